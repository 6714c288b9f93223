import { describe, expect, it } from "vitest";
import { parallel, type Trial } from "@/pages/sweeps/parallel";

const trial = (index: number, lr: number | null, value: number | null): Trial => ({
  index,
  params: { lr, optimizer: "adam" },
  value,
  isWhole: true,
});

describe("parallel coordinates", () => {
  const trials = [trial(0, 0.1, 5), trial(1, 0.3, 1), trial(2, 0.2, null), trial(3, null, 2)];
  const drawn = parallel(trials, ["lr", "optimizer"], "loss", "minimize");

  it("have an axis for each parameter and one for the objective", () => {
    expect(drawn.axes.map((axis) => axis.name)).toEqual(["lr", "optimizer", "loss"]);
    expect(drawn.axes.map((axis) => axis.kind)).toEqual(["linear", "names", "linear"]);
  });
  it("draw what has a place on every axis, the best last and so on top", () => {
    expect(drawn.lines.map((line) => line.index)).toEqual([0, 1]);
    expect(drawn.leftOut).toBe(2);
    expect(drawn.lines[1]).toEqual({
      index: 1,
      points: [
        [0, 1],
        [0.5, 0.5],
        [1, 0],
      ],
      rank: 1,
      isWhole: true,
    });
  });
  it("turn round when more is better", () => {
    const turned = parallel(trials, ["lr"], "accuracy", "maximize");
    expect(turned.lines.map((line) => [line.index, line.rank])).toEqual([
      [1, expect.closeTo(0, 5)],
      [0, 1],
    ]);
  });
  it("live without trials", () => {
    expect(parallel([], ["lr"], "loss", "minimize").lines).toEqual([]);
  });
});
