/** A workload in an address: so many GPUs of a kind for so many hours, and whether machines may be taken away. */

export interface Workload {
  gpu: string;
  gpus: number;
  hours: number;
  isSpot: boolean;
}

export const USUAL: Workload = { gpu: "A100", gpus: 8, hours: 6, isSpot: true };

type Search = Record<string, string | undefined>;

export function workloadOf(search: Search): Workload {
  return {
    gpu: /^[A-Za-z0-9][A-Za-z0-9 ._-]{0,59}$/.test(search["gpu"] ?? "") ? (search["gpu"] as string) : USUAL.gpu,
    gpus: Math.round(within(search["gpus"], 1, 100_000, USUAL.gpus)),
    hours: within(search["hours"], 0.01, 87_840, USUAL.hours),
    isSpot: search["spot"] !== "false",
  };
}

function within(text: string | undefined, least: number, most: number, usual: number): number {
  const value = Number(text);
  return text !== undefined && text !== "" && Number.isFinite(value) ? Math.min(Math.max(value, least), most) : usual;
}

export function searchOf({ gpu, gpus, hours, isSpot }: Workload): Search {
  return { gpu, gpus: String(gpus), hours: String(hours), spot: String(isSpot) };
}

/** A job of that size, to be planned or written on. */
export function specOf({ gpu, gpus, hours, isSpot }: Workload): string {
  return `job:
  name: ${JSON.stringify(`${gpu}-${gpus}`.toLowerCase())}
  command: nvidia-smi
  resources:
    gpus: ${gpus}
    gpu_type: ${JSON.stringify(gpu)}
    estimated_hours: ${hours}
  constraints:
    allow_spot: ${isSpot}
`;
}
