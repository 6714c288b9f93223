import { describe, expect, it } from "vitest";
import { heightOf, ROW_PX, rowAt, scrollTo, TALLEST_PX, windowOf } from "@/pages/job/log/window";

const VIEW = 600;

describe("rows in view", () => {
  it("a short log is as high as its rows", () => {
    expect(heightOf(10)).toBe(10 * ROW_PX);
    expect(windowOf(10, 0, VIEW)).toEqual({ first: 0, end: 10, top: 0 });
  });

  it("draws what is in view and a little around it", () => {
    const seen = windowOf(100_000, 50_000 * ROW_PX, VIEW);
    expect(seen.first).toBeLessThanOrEqual(50_000);
    expect(seen.end).toBeGreaterThanOrEqual(50_000 + VIEW / ROW_PX);
    expect(seen.end - seen.first).toBeLessThan(60);
    expect(seen.top).toBe(seen.first * ROW_PX);
  });

  it.each([1_000_000, 5_000_000])("%i rows are reached from the first to the last", (rows) => {
    const most = heightOf(rows) - VIEW;
    expect(heightOf(rows)).toBeLessThanOrEqual(TALLEST_PX);
    expect(windowOf(rows, 0, VIEW).first).toBe(0);
    expect(windowOf(rows, most, VIEW).end).toBe(rows);
    for (const row of [0, 12_345, rows / 2, rows - VIEW / ROW_PX])
      expect(Math.abs(rowAt(rows, scrollTo(row, rows, VIEW), VIEW) - row)).toBeLessThan(1);
  });
});
