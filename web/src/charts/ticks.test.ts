import { expect, it } from "vitest";
import { ticksUpTo } from "@/charts/ticks";

it.each([
  [0.4322, [0, 0.2, 0.4, 0.6]],
  [10, [0, 2.5, 5, 7.5, 10]],
  [1843.27, [0, 500, 1000, 1500, 2000]],
  [0.000003, [0, 0.000001, 0.000002, 0.000003]],
])("up to %d", (most, ticks) => {
  expect(ticksUpTo(most)).toEqual(ticks);
});

it("nothing at all still has a scale", () => {
  expect(ticksUpTo(0)).toEqual([0, 1]);
});
