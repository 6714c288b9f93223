/** Places and hosts in words. */

/** A provider of one region has no need to say it twice. */
export function placeOf({ provider, region }: { provider: string; region: string }): string {
  return provider === region ? provider : `${provider} ${region}`;
}

/** The GPUs of a host, from what its last check found. */
export function gpusOf(facts: Record<string, unknown>): string {
  const gpus = Array.isArray(facts["gpus"]) ? (facts["gpus"] as { name?: unknown }[]) : [];
  const counts = new Map<string, number>();
  for (const gpu of gpus) {
    const name = String(gpu.name ?? "GPU").replace(/^NVIDIA /, "");
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, many]) => `${many} × ${name}`).join(", ") || "none";
}
