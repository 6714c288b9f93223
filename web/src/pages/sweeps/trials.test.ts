import { expect, it } from "vitest";
import { drawable, outcome, paramOf } from "@/pages/sweeps/trials";

const TASK = {
  id: "t",
  index: 3,
  phase: "succeeded",
  verdict: null,
  params: { lr: 0.1, layers: [1, 2] },
  value: null,
  value_so_far: 0.5,
  metrics: {},
  step: null,
  fraction: null,
  attempts: 1,
  failures: 0,
  losses: 0,
  reason: null,
  where: null,
  started_at: null,
  ended_at: null,
} as const;

it("a trial that runs counts with what it is worth so far", () => {
  expect(drawable([{ ...TASK, params: { lr: 0.1 }, phase: "running" }], ["lr"])).toEqual([
    { index: 3, params: { lr: 0.1 }, value: 0.5, isWhole: false },
  ]);
});

it("parameters that are no plain value are written as text", () => {
  expect(paramOf({ params: { layers: [1, 2] } }, "layers")).toBe("[1,2]");
  expect(paramOf({ params: null }, "lr")).toBeNull();
});

it("a verdict says more than a phase", () => {
  expect(outcome({ phase: "succeeded", verdict: "pruned" })).toBe("pruned");
  expect(outcome({ phase: "succeeded", verdict: null })).toBe("completed");
  expect(outcome({ phase: "running", verdict: null })).toBe("running");
});
