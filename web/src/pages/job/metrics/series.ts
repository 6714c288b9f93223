/** Points of a metric made into lines of a chart. */
import type { Shape } from "@/api/client";

export type Point = Shape<"SeriesPoint">;

interface Begun {
  number: number;
  started_at: string | null;
}

export interface Stretch {
  attempt: number;
  points: Point[];
}

/** After an attempt was lost the next one goes back to its checkpoint: each is a line of its own. */
export function byAttempt(points: Point[], attempts: Begun[]): Stretch[] {
  const begun = attempts
    .filter((one) => one.started_at !== null)
    .map((one) => ({ number: one.number, at: Date.parse(one.started_at ?? "") }))
    .sort((a, b) => a.at - b.at);
  const found = new Map<number, Point[]>();
  let now = 0;
  for (const point of points) {
    while (now + 1 < begun.length && (begun[now + 1]?.at ?? Infinity) <= point.last_t) now += 1;
    const attempt = begun[now]?.number ?? 0;
    const mine = found.get(attempt);
    if (mine) mine.push(point);
    else found.set(attempt, [point]);
  }
  return [...found].map(([attempt, mine]) => ({ attempt, points: mine }));
}

/** Of several samples in one stretch of time the mean; null for what is no number. */
export function valueOf(point: Point): number | null {
  return point.count === 0 ? null : (point.mean ?? point.last);
}

/** A moving mean that forgets: `weight` of what was, the rest of what comes; not drawn towards nothing at its start. */
export function smoothed(values: (number | null)[], weight: number): (number | null)[] {
  if (weight <= 0) return values;
  let mean = 0;
  let seen = 0;
  return values.map((value) => {
    if (value === null) return null;
    mean = weight * mean + (1 - weight) * value;
    seen += 1;
    return mean / (1 - weight ** seen);
  });
}

export interface Drawn {
  name: string;
  x: number[];
  values: (number | null)[];
}

/** Lines over one axis: where a line has no point, it has null. */
export function aligned(lines: Drawn[]): { x: number[]; values: (number | null)[][] } {
  const x = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  const place = new Map(x.map((at, index) => [at, index]));
  const values = lines.map((line) => {
    const row = new Array<number | null>(x.length).fill(null);
    line.x.forEach((at, index) => {
      row[place.get(at) ?? 0] = line.values[index] ?? null;
    });
    return row;
  });
  return { x, values };
}

/** Where a point stands: its step, or its time in seconds; null where it tells no step. */
export function placeOf(point: Point, isTime: boolean): number | null {
  return isTime ? point.last_t / 1000 : point.step;
}

export function invalidOf(points: Point[]): number {
  return points.reduce((sum, point) => sum + point.invalid, 0);
}
