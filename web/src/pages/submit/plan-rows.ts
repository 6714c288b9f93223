/** A plan in words, for a table and the lines around it. Nothing is decided here: the figures are the server's. */
import type { Shape } from "@/api/client";
import { count, duration, percent, plural, usd } from "@/parts/words";

export type Plan = Shape<"Plan">;
export type Option = Shape<"PlanOption">;
type Part = Shape<"PlanPart">;
type Refusal = Shape<"PlanRefusal">;

export interface PlanRow {
  id: string;
  isTicked: boolean;
  /** Of a way that is spread over several places: what is in one of them. */
  isPart: boolean;
  isEnabled: boolean;
  where: string;
  machines: string;
  gpus: string;
  market: string;
  perHour: string;
  start: string;
  hours: string;
  total: string;
  risk: string;
  why: string;
}

const NONE = "–";
const SHOWN_OTHERS = 5;

/** What submit would buy; where nothing that is enabled fits, the best that there is. */
export function choiceOf(plan: Plan): Option | null {
  return plan.runnable ?? plan.chosen;
}

/** The choice, the best of all where that is another one, and what else there is. */
export function optionsOf(plan: Plan): Option[] {
  const listed = [plan.runnable, plan.chosen, ...plan.alternatives, ...(plan.others ?? []).slice(0, SHOWN_OTHERS)];
  const found = new Map<string, Option>();
  for (const one of listed) if (one && !found.has(idOf(one))) found.set(idOf(one), one);
  return [...found.values()];
}

export function planRows(plan: Plan): PlanRow[] {
  const choice = choiceOf(plan);
  return optionsOf(plan).flatMap((one) => [
    row(one, choice !== null && idOf(one) === idOf(choice)),
    ...(isScattered(one) ? one.parts.map((part) => partRow(part, one)) : []),
  ]);
}

function row(one: Option, isTicked: boolean): PlanRow {
  return {
    id: idOf(one),
    isTicked,
    isPart: false,
    isEnabled: one.is_enabled,
    where: isScattered(one) ? plural(one.parts.length, "place") : placeOf(one),
    machines: isScattered(one) ? plural(one.count, "machine") : `${one.count} × ${one.instance_type}`,
    gpus: gpusOf(one),
    market: marketOf(one),
    perHour: usd(one.total_per_hour_usd),
    start: duration(one.start_s),
    hours: hoursOf(one.estimated_hours),
    total: costRange(one),
    risk: riskOf(one),
    why: one.why,
  };
}

function partRow(part: Part, whole: Option): PlanRow {
  return {
    id: `${idOf(whole)} ${part.offer}`,
    isTicked: false,
    isPart: true,
    isEnabled: whole.is_enabled,
    where: placeOf(part),
    machines: `${part.count} × ${part.instance_type}`,
    gpus: `${part.count * part.gpus} ${part.gpu ?? ""}`.trim(),
    market: part.market,
    perHour: "",
    start: "",
    hours: "",
    total: "",
    risk: "",
    why: "",
  };
}

function idOf(one: Option): string {
  return one.parts.map((part) => `${part.count}x${part.offer}`).join("+") || one.offer;
}

export function placeOf(one: { provider: string; region: string; zone: string }): string {
  return `${one.provider}/${one.zone || one.region}`;
}

/** A gang with some machines on demand stands in one place; tasks need not. */
function isScattered(one: Option): boolean {
  return new Set(one.parts.map((part) => `${placeOf(part)} ${part.instance_type}`)).size > 1;
}

export function gpusOf(one: Option): string {
  const parts: { count: number; gpus: number }[] = one.parts.length > 0 ? one.parts : [one];
  const all = parts.reduce((sum, part) => sum + part.count * part.gpus, 0);
  return isScattered(one) ? String(all) : `${all} ${one.gpu ?? ""}`.trim();
}

export function marketOf(one: Option): string {
  const markets = new Set(one.parts.map((part) => part.market));
  if (markets.size <= 1) return one.market;
  return isScattered(one) ? "several" : one.parts.map((part) => `${part.count} ${part.market}`).join(" + ");
}

export function hoursOf(hours: number | null | undefined): string {
  return hours === null || hours === undefined ? NONE : String(Number(hours.toPrecision(3)));
}

/** From the median to nine in ten, where something can happen. */
export function costRange(one: Option): string {
  const [low, high] = [usd(one.cost_p50_usd), usd(one.cost_p90_usd)];
  return one.cost_p50_usd === null || one.cost_p90_usd === null || low === high
    ? usd(one.estimated_cost_usd)
    : `${low}–${high}`;
}

/** How likely it misses deadline or budget; a dash where it cannot. */
export function riskOf(one: Option): string {
  const risk = 1 - one.reliability;
  return risk < 0.0005 ? NONE : percent(risk, 1);
}

/** "4 of 17,967 offers; 84 fit; prices 88 d old (stale); at most 0% from the optimum". */
export function figuresOf(plan: Plan): string {
  if (!plan.considered) return "";
  const said = [`${count(optionsOf(plan).length)} of ${count(plan.considered)} offers`, `${count(plan.feasible)} fit`];
  if (plan.price_age_s != null)
    said.push(`prices ${duration(plan.price_age_s)} old${plan.is_price_stale ? " (stale)" : ""}`);
  if (plan.chosen) said.push(`at most ${percent(plan.bound ?? 0)} from the optimum`);
  if (plan.plan_cpu_ms != null) said.push(`planned in ${Math.round(plan.plan_cpu_ms)} ms`);
  return said.join(" · ");
}

/** What is to be known about one way beside its row: saving, interruptions, data. */
export function linesAbout(one: Option): string[] {
  const lines: string[] = [];
  if (one.saving) lines.push(`saves ${percent(one.saving)} against ${usd(one.on_demand_cost_usd)} on demand`);
  if (one.interruptions && one.interruptions >= 0.005) {
    const every = one.checkpoint_interval_s ? `; checkpoint every ${duration(one.checkpoint_interval_s)}` : "";
    lines.push(`${Number(one.interruptions.toPrecision(2))} interruptions expected${every}`);
  }
  if (one.egress_usd || one.staging_hours) {
    const staging = one.staging_hours ? `, ${duration(one.staging_hours * 3600)} before the work starts` : "";
    lines.push(`data: ${usd(one.egress_usd)} to move${staging}`);
  }
  return lines;
}

/** What keeps submit from the best of all, if anything does. */
export function enablingOf(plan: Plan): string | null {
  if (!plan.chosen || plan.chosen.is_enabled) return null;
  const best = `${plan.chosen.provider} ${plan.chosen.region}`;
  if (plan.runnable) return `${best} is not enabled: submit would use ${placeOf(plan.runnable)}`;
  return plan.rejections.some((one) => one.rule === "sold_out")
    ? `${best} is not enabled, and what is has nothing free: the job would wait`
    : `${best} is not enabled, and nothing that is could run it: the server would refuse the job`;
}

/** Rules are asked in order: what the last of them turned down came nearest, and stands first. */
export function whyNot(plan: Plan): { what: string; why: string }[] {
  return [...plan.rejections].reverse().map((one) => ({ what: refused(one), why: one.reason }));
}

function refused(one: Refusal): string {
  const name = `${one.provider}/${one.region} ${one.instance_type}`;
  return (one.offers ?? 1) === 1 ? name : `${count(one.offers)} offers such as ${name}`;
}
