/** Periods in the words of the command line (`--for`), in UTC: today, 7d, last month, 2026-11, 2026-11-01..2026-11-15. Both ends
 * are whole hours; the last one is no part of it. */
export interface Period {
  from: Date;
  to: Date;
}

export const THIS_MONTH = "this month";
export const SPANS = ["today", "yesterday", "24h", "7d", "30d", "90d", THIS_MONTH, "last month", "this year"];

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** null: nobody would understand that. */
export function periodOf(said: string, now: Date): Period | null {
  const [first, last, ...more] = said.trim().toLowerCase().split("..");
  if (last === undefined) return relative(first ?? "", now) ?? stated(first ?? "");
  const [start, end] = [stated(first ?? ""), stated(last)];
  if (more.length > 0 || start === null || end === null || start.from >= end.to) return null;
  return { from: start.from, to: end.to };
}

function relative(said: string, now: Date): Period | null {
  const [year, month, today] = [now.getUTCFullYear(), now.getUTCMonth(), midnight(now)];
  if (said === "today") return lasting(today, DAY_MS);
  if (said === "yesterday") return lasting(today - DAY_MS, DAY_MS);
  if (said === THIS_MONTH) return monthOf(year, month);
  if (said === "last month") return monthOf(year, month - 1);
  if (said === "this year") return yearOf(year);
  if (said === "last year") return yearOf(year - 1);
  const [, amount, unit] = /^(\d{1,4})([hdw])$/.exec(said) ?? [];
  if (!amount || Number(amount) === 0) return null;
  if (unit === "h") return until(Math.floor(now.getTime() / HOUR_MS + 1) * HOUR_MS, Number(amount) * HOUR_MS);
  return until(today + DAY_MS, Number(amount) * (unit === "w" ? 7 : 1) * DAY_MS);
}

function stated(said: string): Period | null {
  const [, year, month, day] = /^(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?$/.exec(said.trim()) ?? [];
  if (year === undefined) return null;
  if (month === undefined) return yearOf(Number(year));
  const at = Date.parse(`${year}-${month}-${day ?? "01"}T00:00Z`);
  if (Number.isNaN(at) || new Date(at).getUTCMonth() !== Number(month) - 1) return null;
  return day === undefined ? monthOf(Number(year), Number(month) - 1) : lasting(at, DAY_MS);
}

function midnight(at: Date): number {
  return Math.floor(at.getTime() / DAY_MS) * DAY_MS;
}

function lasting(from: number, length: number): Period {
  return { from: new Date(from), to: new Date(from + length) };
}

function until(to: number, length: number): Period {
  return { from: new Date(to - length), to: new Date(to) };
}

function monthOf(year: number, month: number): Period {
  return { from: new Date(Date.UTC(year, month, 1)), to: new Date(Date.UTC(year, month + 1, 1)) };
}

function yearOf(year: number): Period {
  return { from: new Date(Date.UTC(year, 0, 1)), to: new Date(Date.UTC(year + 1, 0, 1)) };
}

/** Widened to whole days. */
export function wholeDays({ from, to }: Period): Period {
  return { from: new Date(midnight(from)), to: new Date(Math.ceil(to.getTime() / DAY_MS) * DAY_MS) };
}

/** Its days, the last one with it: 2026-11-01..2026-11-15. */
export function daysOf({ from, to }: Period): string {
  const last = new Date(to.getTime() - 1);
  return `${from.toISOString().slice(0, 10)}..${last.toISOString().slice(0, 10)}`;
}

/** As the API wants it: 2026-11-01T00:00Z. */
export function written(at: Date): string {
  return `${at.toISOString().slice(0, 16)}Z`;
}

export function hoursOf({ from, to }: Period): number {
  return (to.getTime() - from.getTime()) / HOUR_MS;
}
