/** What the address asks for: a period, what costs are told apart by, by day or by hour, and what they are narrowed to. */
import { quoted } from "@/parts/quoted";
import { daysOf, hoursOf, periodOf, THIS_MONTH, wholeDays, written, type Period } from "@/pages/costs/periods";

export const BYS = [
  "team",
  "project",
  "user",
  "provider",
  "region",
  "gpu",
  "instance_type",
  "market",
  "kind",
  "job",
] as const;
export type By = (typeof BYS)[number];
export type Step = "day" | "hour";

/** Those that a report can be narrowed to: a job has a page of its own. */
export const FILTERS = BYS.filter((by) => by !== "job");

export interface Asked {
  span: string;
  /** null where the words mean none. */
  period: Period | null;
  by: By;
  step: Step;
  only: Partial<Record<By, string>>;
}

export type Search = Record<string, string | undefined>;

/** More columns than that are no longer told apart. */
const MOST_HOURS = 8 * 24;
const FEW_HOURS = 48;

export function askedOf(search: Search, now: Date): Asked {
  const by = BYS.find((one) => one === search["by"]) ?? "team";
  const { span, period } = spanOf(search["for"] ?? THIS_MONTH, by, now);
  const only = Object.fromEntries(FILTERS.map((one) => [one, search[one]]).filter(([, value]) => value !== undefined));
  return { span, period, by, step: stepOf(search["step"], period, by), only: only as Asked["only"] };
}

/** Costs of single jobs are kept by whole days: what begins or ends within one is widened to them. */
function spanOf(span: string, by: By, now: Date): Pick<Asked, "span" | "period"> {
  const period = periodOf(span, now);
  if (by !== "job" || period === null) return { span, period };
  const days = wholeDays(period);
  return hoursOf(days) === hoursOf(period) ? { span, period } : { span: daysOf(days), period: days };
}

function stepOf(said: string | undefined, period: Period | null, by: By): Step {
  if (period === null || !mayBeHours(period, by)) return "day";
  return said === "hour" || (said === undefined && hoursOf(period) <= FEW_HOURS) ? "hour" : "day";
}

/** Rows by job are of whole days. */
export function mayBeHours(period: Period | null, by: By): boolean {
  return period !== null && by !== "job" && hoursOf(period) <= MOST_HOURS;
}

/** Without a period the server answers for this month. */
export function rangeOf({ period, only }: Asked) {
  const range = period === null ? {} : { from: written(period.from), to: written(period.to) };
  return { ...range, ...only };
}

/** Where one goes from what one row shows. */
const WITHIN: Record<By, By> = {
  team: "project",
  project: "user",
  user: "job",
  provider: "region",
  region: "gpu",
  gpu: "instance_type",
  instance_type: "market",
  market: "gpu",
  kind: "team",
  job: "job",
};

export function narrowedTo(value: string, { by }: Asked): Search {
  return { by: WITHIN[by], [by]: value };
}

export function commandOf(command: string, by: string, { span, only }: Asked): string {
  const period = span === THIS_MONTH ? [] : ["--for", quoted(span)];
  const narrowed = FILTERS.flatMap((one) => {
    const value = only[one];
    return value === undefined ? [] : [`--${one.replace("_", "-")}`, quoted(value)];
  });
  return ["crucible", command, "--by", by, ...period, ...narrowed].join(" ");
}
