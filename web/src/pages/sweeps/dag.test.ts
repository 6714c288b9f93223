import { describe, expect, it } from "vitest";
import { BOX, curve, drawn, layers, type Drawing, type Step } from "@/pages/sweeps/dag";

const step = (name: string, ...needs: string[]): Step => ({ name, needs });
const box = (drawing: Drawing, name: string) => drawing.boxes.find((one) => one.name === name);

function overlaps(drawing: Drawing): boolean {
  return drawing.boxes.some((a, at) =>
    drawing.boxes.slice(at + 1).some((b) => Math.abs(a.x - b.x) < BOX.width && Math.abs(a.y - b.y) < BOX.height),
  );
}

describe("the layers of a workflow", () => {
  it("put every step after all that it needs, by the longest way", () => {
    const steps = [step("d", "a", "c"), step("a"), step("b", "a"), step("c", "b")];
    const found = layers(steps, new Set(["a", "b", "c", "d"]));
    expect(["a", "b", "c", "d"].map((name) => found.get(name))).toEqual([0, 1, 2, 3]);
  });
  it("come to an end for what needs itself", () => {
    expect(layers([step("a", "b"), step("b", "a")], new Set(["a", "b"])).size).toBe(2);
  });
});

describe("a drawing", () => {
  it("goes from left to right and overlaps nowhere", () => {
    const drawing = drawn([step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c"), step("e", "a", "d")]);
    for (const { from, to } of drawing.arrows) expect(box(drawing, from)?.x).toBeLessThan(box(drawing, to)?.x ?? 0);
    expect(overlaps(drawing)).toBe(false);
    expect(drawing.arrows).toHaveLength(6);
  });
  it("crosses no arrows that need not cross", () => {
    const drawing = drawn([step("a"), step("b"), step("x", "b"), step("y", "a")]);
    const isAbove = (one: string, other: string) => (box(drawing, one)?.y ?? 0) < (box(drawing, other)?.y ?? 0);
    expect(isAbove("a", "b")).toBe(isAbove("y", "x"));
  });
  it("leads a long arrow around the steps between", () => {
    const drawing = drawn([step("a"), step("b", "a"), step("c", "b", "a")]);
    const long = drawing.arrows.find((arrow) => arrow.from === "a" && arrow.to === "c");
    const between = box(drawing, "b");
    expect(long?.points).toHaveLength(4);
    expect(long?.points[1]?.[1]).not.toBe((between?.y ?? 0) + BOX.height / 2);
  });
  it("holds everything", () => {
    const drawing = drawn(
      Array.from({ length: 40 }, (_, at) => step(`s${at}`, ...(at > 0 ? [`s${Math.floor((at - 1) / 3)}`] : []))),
    );
    expect(overlaps(drawing)).toBe(false);
    for (const one of drawing.boxes) {
      expect(one.x + BOX.width).toBeLessThanOrEqual(drawing.width);
      expect(one.y + BOX.height).toBeLessThanOrEqual(drawing.height);
    }
  });
  it("ignores what it does not know, and is small for nothing", () => {
    expect(drawn([step("a", "ghost")]).arrows).toEqual([]);
    expect(drawn([]).boxes).toEqual([]);
  });
});

it("an arrow is straight where it can be", () => {
  expect(
    curve([
      [0, 5],
      [10, 5],
    ]),
  ).toBe("M0,5H10");
  expect(
    curve([
      [0, 0],
      [10, 20],
    ]),
  ).toBe("M0,0C5,0 5,20 10,20");
});
