/** Where values lie on an axis, between 0 and 1: evenly, by their logarithm, or one place for each name. */

export type Value = number | string | boolean | null | undefined;

export interface Axis {
  name: string;
  kind: "linear" | "log" | "names";
  /** The least and the most, or the names in their order. */
  domain: number[] | string[];
  ticks: { at: number; text: string }[];
}

/** Spread over more than this, figures are drawn by their logarithm. */
const WIDE = 100;

export function axisOf(name: string, values: Value[]): Axis {
  const known = values.filter((value) => value !== null && value !== undefined);
  const numbers = known.filter((value) => typeof value === "number" && Number.isFinite(value)) as number[];
  return numbers.length === known.length ? ofNumbers(name, numbers) : ofNames(name, known.map(String));
}

/** Null: it has no place there. */
export function place(axis: Axis, value: Value): number | null {
  if (value === null || value === undefined) return null;
  if (axis.kind === "names") {
    const at = (axis.domain as string[]).indexOf(String(value));
    return at < 0 ? null : spread(at, axis.domain.length);
  }
  if (typeof value !== "number" || !Number.isFinite(value)) return null;
  const [low = 0, high = 0] = axis.domain as number[];
  if (low === high) return 0.5;
  if (axis.kind === "linear") return (value - low) / (high - low);
  return value <= 0 ? null : Math.log(value / low) / Math.log(high / low);
}

function ofNumbers(name: string, numbers: number[]): Axis {
  const low = numbers.length ? Math.min(...numbers) : 0;
  const high = numbers.length ? Math.max(...numbers) : 1;
  const kind = low > 0 && high / low > WIDE ? "log" : "linear";
  const domain = [low, high];
  const marks = low === high ? [low] : kind === "log" ? powers(low, high) : rounds(low, high);
  const axis: Axis = { name, kind, domain, ticks: [] };
  return { ...axis, ticks: marks.map((mark) => ({ at: place(axis, mark) ?? 0, text: figure(mark) })) };
}

function ofNames(name: string, values: string[]): Axis {
  const domain = [...new Set(values)].sort();
  return { name, kind: "names", domain, ticks: domain.map((text, at) => ({ at: spread(at, domain.length), text })) };
}

function spread(at: number, many: number): number {
  return many === 1 ? 0.5 : at / (many - 1);
}

/** About five round figures between two. */
function rounds(low: number, high: number): number[] {
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
  const first = Math.ceil(low / step);
  const many = Math.floor(high / step) - first + 1;
  return Array.from({ length: Math.max(0, many) }, (_, at) => (first + at) * step);
}

function powers(low: number, high: number): number[] {
  const [from, to] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
  const stride = Math.max(1, Math.ceil((to - from) / 6));
  return Array.from({ length: Math.floor((to - from) / stride) + 1 }, (_, at) => 10 ** (from + at * stride));
}

/** Four digits that count, no noise of binary fractions. */
export function figure(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(4)));
}
