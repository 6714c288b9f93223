import { describe, expect, it } from "vitest";
import { aligned, byAttempt, smoothed, valueOf, type Point } from "@/pages/job/metrics/series";

function point(seconds: number, step: number, more: Partial<Point> = {}): Point {
  const value = step / 10;
  const t = seconds * 1000;
  return { t, count: 1, invalid: 0, min: value, max: value, mean: value, last: value, last_t: t, step, ...more };
}

const begun = (number: number, seconds: number) => ({ number, started_at: new Date(seconds * 1000).toISOString() });

describe("lines of a chart", () => {
  it("an attempt that goes back to its checkpoint is a line of its own", () => {
    const points = [point(10, 1), point(11, 2), point(12, 3), point(20, 2), point(21, 3)];
    const found = byAttempt(points, [begun(0, 9), begun(1, 15), { number: 2, started_at: null }]);
    expect(found.map((one) => [one.attempt, one.points.map((each) => each.step)])).toEqual([
      [0, [1, 2, 3]],
      [1, [2, 3]],
    ]);
  });

  it("without attempts there is one line", () => {
    expect(byAttempt([point(1, 1)], [])).toHaveLength(1);
  });

  it("what is no number is a gap", () => {
    expect(valueOf(point(1, 1, { count: 0, invalid: 1, mean: null, last: null }))).toBeNull();
  });

  it("smoothing keeps a constant as it is, from the first value on", () => {
    expect(smoothed([2, 2, null, 2], 0.9)).toEqual([2, 2, null, expect.closeTo(2)]);
    expect(smoothed([1, 3], 0)).toEqual([1, 3]);
  });

  it("lines with other steps share an axis", () => {
    const found = aligned([
      { name: "a", x: [1, 3], values: [10, 30] },
      { name: "b", x: [2, 3], values: [20, 31] },
    ]);
    expect(found).toEqual({
      x: [1, 2, 3],
      values: [
        [10, null, 30],
        [null, 20, 31],
      ],
    });
  });
});
