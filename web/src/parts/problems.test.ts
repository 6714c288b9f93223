import { expect, it } from "vitest";
import { ApiError } from "@/api/errors";
import { problemAt, problemBeside } from "@/parts/problems";

const refused = new ApiError("invalid_request", "a price is above zero", 422, { field: "price.below_usd" });
const malformed = new ApiError("invalid_request", "limit_usd: too small", 422, {
  field: "limit_usd",
  problems: [
    { field: "limit_usd", message: "too small" },
    { field: "body.thresholds.0", message: "too large" },
  ],
});

it("a problem is shown at its field, and at the field that it is a part of", () => {
  expect(problemAt(refused, "price.below_usd")).toBe("a price is above zero");
  expect(problemAt(refused, "price")).toBe("a price is above zero");
  expect(problemAt(refused, "price.drop")).toBeUndefined();
});

it("several problems are shown each at its own", () => {
  expect(problemAt(malformed, "limit_usd")).toBe("too small");
  expect(problemAt(malformed, "thresholds")).toBe("too large");
});

it("what no field shows stands beside them", () => {
  expect(problemBeside(refused, ["name", "price"])).toBeNull();
  expect(problemBeside(refused, ["name"])).toBe(refused);
  expect(problemBeside(null, ["name"])).toBeNull();
});
