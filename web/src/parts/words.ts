/** How figures are written, the same everywhere. Money is told in US dollars; nothing is rounded to nothing. */

export const DASH = "–";

export function usd(amount: number | null | undefined): string {
  if (amount === null || amount === undefined) return DASH;
  const size = Math.abs(amount);
  const digits = size === 0 || size >= 1 ? 2 : size >= 0.01 ? 4 : 6;
  const least = digits === 6 ? 2 : digits;
  return format(
    { style: "currency", currency: "USD", minimumFractionDigits: least, maximumFractionDigits: digits },
    amount,
  );
}

/** Formats are dear to make, and few. */
const made = new Map<string, Intl.NumberFormat>();

function format(options: Intl.NumberFormatOptions, value: number): string {
  const key = Object.values(options).join();
  const known = made.get(key) ?? new Intl.NumberFormat("en-US", options);
  made.set(key, known);
  return known.format(value);
}

export function rate(perHour: number | null | undefined): string {
  return perHour === null || perHour === undefined ? DASH : `${usd(perHour)}/h`;
}

export function percent(share: number | null | undefined, digits = 0): string {
  if (share === null || share === undefined) return DASH;
  return format({ style: "percent", maximumFractionDigits: digits }, share);
}

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? DASH : format({ style: "decimal" }, value);
}

/** Of a measured value: five digits, whatever its size. */
export function significant(value: number | null | undefined): string {
  return value === null || value === undefined ? DASH : Number(value.toPrecision(5)).toString();
}

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return DASH;
  let size = value;
  let unit = 0;
  while (size >= 1024 && unit < SIZES.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${size >= 100 || unit === 0 ? size.toFixed(0) : size.toFixed(1)} ${SIZES[unit]}`;
}

/** 45 s, 12 min, 3 h 20 min, 2 d 4 h. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return DASH;
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 600) return pair(Math.floor(whole / 60), "min", whole % 60, "s");
  if (whole < 3600) return `${Math.round(whole / 60)} min`;
  const minutes = Math.round(whole / 60);
  if (whole < 86_400) return pair(Math.floor(minutes / 60), "h", minutes % 60, "min");
  const hours = Math.round(whole / 3600);
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

export function hours(value: number | null | undefined): string {
  return duration(value === null || value === undefined ? null : value * 3600);
}

function pair(whole: number, unit: string, rest: number, smaller: string): string {
  return rest === 0 ? `${whole} ${unit}` : `${whole} ${unit} ${rest} ${smaller}`;
}

export function ago(at: Date, now: Date): string {
  const seconds = (now.getTime() - at.getTime()) / 1000;
  if (seconds < 0) return `in ${duration(-seconds)}`;
  return seconds < 5 ? "just now" : `${duration(seconds)} ago`;
}

const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export function localTime(at: Date): string {
  return LOCAL.format(at);
}

export function utcTime(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}
