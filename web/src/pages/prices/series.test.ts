import { describe, expect, test } from "vitest";
import { seriesOf, type Change } from "@/pages/prices/series";

function change(hour: number, price: number | null, zone = "a"): Change {
  return {
    provider: "aws",
    region: "us-east-1",
    zone,
    instance_type: "p5",
    market: "spot",
    price_per_hour_usd: price,
    as_of: `2026-01-01T0${hour}:00:00Z`,
    source: "list",
  };
}
const UNTIL = new Date("2026-01-01T05:00:00Z");

describe("changes of prices as lines", () => {
  test("a price holds until the next change, and until now", () => {
    const { x, series } = seriesOf([change(1, 20), change(2, 30, "b"), change(3, 25)], UNTIL);
    expect(x).toHaveLength(4);
    expect(series.map(({ name, values }) => [name, values])).toEqual([
      ["aws/a p5 spot", [20, 20, 25, 25]],
      ["aws/b p5 spot", [null, 30, 30, 30]],
    ]);
  });
  test("the one that changed most comes first, with its least and most", () => {
    const { series } = seriesOf([change(1, 5, "calm"), change(1, 20), change(2, 40), change(3, 30)], UNTIL);
    expect(series[0]).toMatchObject({ now: 30, low: 20, high: 40, changes: 2, last: "2026-01-01T03:00:00Z" });
    expect(series[1]).toMatchObject({ name: "aws/calm p5 spot", changes: 0 });
  });
  test("a price that is no longer said is a gap", () =>
    expect(seriesOf([change(1, 20), change(2, null)], UNTIL).series[0]?.values).toEqual([20, null, null]));
});
