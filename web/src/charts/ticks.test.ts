import { expect, it } from "vitest";
import { ticksUpTo, timeWords } from "@/charts/ticks";

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

it("moments are as short as their distance allows, and say their day where it begins", () => {
  const at = (text: string) => new Date(text).getTime() / 1000;
  const words = timeWords([at("2026-11-18T23:30"), at("2026-11-18T23:45"), at("2026-11-19T00:00")], 900);
  expect(words.map((one) => one.split("\n")[0])).toEqual(["23:30", "23:45", "00:00"]);
  expect(words.map((one) => one.includes("\n"))).toEqual([true, false, true]);
  expect(timeWords([at("2026-11-18T00:00")], 86_400)[0]).not.toContain(":");
  expect(timeWords([at("2026-11-18T12:00:30")], 30)[0]).toContain("12:00:30");
});
