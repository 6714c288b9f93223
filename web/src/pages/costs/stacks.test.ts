import { expect, it } from "vitest";
import { stacksOf, timesOf } from "@/pages/costs/stacks";

type Rows = Parameters<typeof stacksOf>[0];

function row(day: string, team: string, cost_microusd: number): Rows[number] {
  return { key: { day, team }, job_name: null, cost_microusd } as unknown as Rows[number];
}

const FIRST = new Date("2026-11-01T00:00Z");
const THIRD = new Date("2026-11-03T12:00Z");

it("every day has a column, and the dearest name comes first", () => {
  const rows = [row("2026-11-01", "a", 1_000_000), row("2026-11-03", "b", 3_000_000), row("2026-11-03", "a", 500_000)];
  expect(stacksOf(rows, "team", "day", FIRST, THIRD)).toEqual({
    names: ["b", "a"],
    columns: [
      { name: "2026-11-01", parts: [0, 1] },
      { name: "2026-11-02", parts: [0, 0] },
      { name: "2026-11-03", parts: [3, 0.5] },
    ],
  });
});

it("names beyond the palette share one part, and nothing is lost", () => {
  const rows = ["a", "b", "c", "d"].map((team, at) => row("2026-11-01", team, (4 - at) * 1_000_000));
  const { names, columns } = stacksOf(rows, "team", "day", FIRST, THIRD, 3);
  expect(names).toEqual(["a", "b", "2 others"]);
  expect(columns[0]?.parts).toEqual([4, 3, 3]);
});

it("as many names as colours need no others", () => {
  const rows = ["a", "b", "c"].map((team) => row("2026-11-01", team, 1));
  expect(stacksOf(rows, "team", "day", FIRST, THIRD, 3).names).toHaveLength(3);
});

it("hours are written as the API does", () => {
  expect(timesOf("hour", new Date("2026-11-18T06:00Z"), new Date("2026-11-18T07:30Z"))).toEqual([
    "2026-11-18T06:00Z",
    "2026-11-18T07:00Z",
  ]);
});
