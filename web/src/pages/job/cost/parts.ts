/** Words for the parts that costs are told in. */
export const KINDS: Record<string, string> = {
  compute: "machines",
  storage: "disks and storage",
  address: "addresses",
  transfer: "moved data (egress)",
};

export const IDLE: Record<string, string> = {
  boot: "machines starting",
  setup: "code and data being prepared",
  gang: "machines waiting for each other",
  upload: "results being stored",
  give_back: "machines being given back",
  waiting: "nothing to run",
  spare: "room that was not used",
  unheld: "machines of no attempt",
};

/** "0.005 $ per 3600 s", as it is in the ledger. */
export function rateWords(rateUsd: number, perS: number): string {
  const per = { 1: "second", 60: "minute", 3600: "hour", 2628000: "month" }[perS] ?? `${perS} s`;
  return `$${Number(rateUsd.toPrecision(12))} per ${per}`;
}

/** Of an amount that must be read to the last digit: all six digits of a micro-dollar. */
export function exact(microusd: number): string {
  const sign = microusd < 0 ? "−" : "";
  const whole = Math.abs(microusd);
  return `${sign}$${Math.floor(whole / 1e6).toLocaleString("en-US")}.${String(whole % 1e6).padStart(6, "0")}`;
}
