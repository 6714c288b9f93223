import { describe, expect, test } from "vitest";
import { commandOf, filtersOf, PAGE, searchOf } from "@/pages/prices/filters";

describe("filters in an address", () => {
  test("come back as they were put there", () => {
    const search = { gpu: "H100:8", provider: "aws", market: "spot", max: "12.5", sort: "price", limit: "150" };
    expect(JSON.parse(JSON.stringify(searchOf(filtersOf(search))))).toEqual(search);
  });
  test("what is as usual stands in no address", () =>
    expect(Object.values(searchOf(filtersOf({}))).every((value) => value === undefined)).toBe(true));
  test("nonsense is as usual", () =>
    expect(filtersOf({ market: "x", max: "much", sort: "luck", limit: "9999" })).toMatchObject({
      market: "",
      maxPrice: null,
      sort: "gpu_price",
      limit: PAGE,
    }));
  test("the command line asks the same", () =>
    expect(commandOf(filtersOf({ gpu: "A100", market: "spot", max: "12" }))).toBe(
      "crucible offers --gpu A100 --spot --max-price 12",
    ));
});
