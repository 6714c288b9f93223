/** Rows by time and something else, as columns that stand beside each other: one for every day or hour, spent in or not. */
import type { Shape } from "@/api/client";
import type { Step } from "@/pages/costs/asked";
import type { Column } from "@/charts/StackedColumns";

type Row = Shape<"Row">;

export interface Stacks {
  names: string[];
  columns: Column[];
}

const STEP_MS = { day: 86_400_000, hour: 3_600_000 };
const MICRO = 1_000_000;

/** `until`: what is to come has no column. Names beyond `most` share the last one. */
export function stacksOf(rows: Row[], by: string, step: Step, from: Date, until: Date, most = 6): Stacks {
  const cells = rows.map((row) => ({
    at: row.key[step] ?? "",
    name: row.job_name ?? row.key[by] ?? "",
    cost: row.cost_microusd,
  }));
  const names = dearest(cells);
  const shown = names.length > most ? names.slice(0, most - 1) : names;
  const places = new Map(names.map((name, at) => [name, Math.min(at, shown.length)]));
  const width = names.length > shown.length ? shown.length + 1 : shown.length;
  const sums = new Map<string, number[]>();
  for (const { at, name, cost } of cells) {
    const parts = sums.get(at) ?? new Array<number>(width).fill(0);
    const place = places.get(name) ?? 0;
    parts[place] = (parts[place] ?? 0) + cost;
    sums.set(at, parts);
  }
  const nothing = new Array<number>(width).fill(0);
  const columns = timesOf(step, from, until).map((name) => ({
    name,
    parts: (sums.get(name) ?? nothing).map((microusd) => microusd / MICRO),
  }));
  const rest = names.length - shown.length;
  return { names: rest > 0 ? [...shown, `${rest} others`] : shown, columns };
}

function dearest(cells: { name: string; cost: number }[]): string[] {
  const sums = new Map<string, number>();
  for (const { name, cost } of cells) sums.set(name, (sums.get(name) ?? 0) + cost);
  return [...sums].sort((one, other) => other[1] - one[1]).map(([name]) => name);
}

/** In the API's words: 2026-11-18, 2026-11-18T06:00Z. */
export function timesOf(step: Step, from: Date, until: Date): string[] {
  const found: string[] = [];
  for (let at = from.getTime(); at < until.getTime(); at += STEP_MS[step]) {
    const written = new Date(at).toISOString();
    found.push(step === "day" ? written.slice(0, 10) : `${written.slice(0, 13)}:00Z`);
  }
  return found;
}
