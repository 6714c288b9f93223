import { describe, expect, it } from "vitest";
import { axisOf, figure, place } from "@/pages/sweeps/axis";

describe("an axis of figures", () => {
  it("goes from the least to the most, with round marks between", () => {
    const axis = axisOf("width", [2, 4, 12]);
    expect(axis.kind).toBe("linear");
    expect([place(axis, 2), place(axis, 7), place(axis, 12)]).toEqual([0, 0.5, 1]);
    expect(axis.ticks.map((tick) => tick.text)).toEqual(["5", "10"]);
  });
  it("is logarithmic where figures lie far apart, and marks powers of ten", () => {
    const axis = axisOf("lr", [1e-5, 1e-1]);
    expect(axis.kind).toBe("log");
    expect(place(axis, 1e-3)).toBeCloseTo(0.5);
    expect(axis.ticks.map((tick) => tick.text)).toEqual(["1e-5", "1e-4", "0.001", "0.01", "0.1"]);
    expect(place(axis, 0)).toBeNull();
  });
  it("puts a single figure in the middle", () => {
    expect(place(axisOf("epochs", [30, 30]), 30)).toBe(0.5);
  });
  it("has no place for what is no figure", () => {
    const axis = axisOf("loss", [1, 2]);
    expect([place(axis, null), place(axis, NaN), place(axis, "x")]).toEqual([null, null, null]);
  });
  it("lives without any value", () => {
    expect(axisOf("loss", []).domain).toEqual([0, 1]);
  });
});

it("an axis of names has a place for each, also where figures are among them", () => {
  const axis = axisOf("optimizer", ["sgd", "adam", "sgd", 3, true]);
  expect(axis.domain).toEqual(["3", "adam", "sgd", "true"]);
  expect([place(axis, 3), place(axis, "true")]).toEqual([0, 1]);
  expect(place(axis, "lion")).toBeNull();
});

it("figures are short and exact enough", () => {
  expect([figure(0.1 + 0.2), figure(1234567), figure(0.00005245), figure(0)]).toEqual([
    "0.3",
    "1.23e+6",
    "5.25e-5",
    "0",
  ]);
});
