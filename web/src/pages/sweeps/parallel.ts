/** The geometry of parallel coordinates: an axis for each parameter and one for what a trial was worth, and a line for
 * each trial across them. */
import { axisOf, place, type Axis, type Value } from "@/pages/sweeps/axis";

export interface Trial {
  index: number;
  params: Record<string, Value>;
  value: number | null;
  isWhole: boolean; // it came to its end
}

export interface Line {
  index: number;
  /** x and y of each axis, 0 … 1, y from below. */
  points: [number, number][];
  /** 1: the best of all, 0: the worst. */
  rank: number;
  isWhole: boolean;
}

export interface Parallel {
  axes: Axis[];
  lines: Line[];
  /** Trials that lack a value or a parameter. */
  leftOut: number;
}

export function parallel(
  trials: Trial[],
  parameters: string[],
  objective: string,
  goal: "minimize" | "maximize",
): Parallel {
  const axes = [
    ...parameters.map((name) =>
      axisOf(
        name,
        trials.map((trial) => trial.params[name]),
      ),
    ),
    axisOf(
      objective,
      trials.map((trial) => trial.value),
    ),
  ];
  const ranks = ranked(trials, goal);
  const lines = trials.flatMap((trial) => lineOf(trial, axes, parameters, ranks) ?? []);
  return { axes, lines: lines.sort((a, b) => a.rank - b.rank), leftOut: trials.length - lines.length };
}

function lineOf(trial: Trial, axes: Axis[], parameters: string[], ranks: Map<number, number>): Line | null {
  const values = [...parameters.map((name) => trial.params[name]), trial.value];
  const heights = axes.map((axis, at) => place(axis, values[at]));
  if (heights.some((height) => height === null)) return null;
  const points = heights.map((height, at): [number, number] => [
    axes.length < 2 ? 0.5 : at / (axes.length - 1),
    height ?? 0,
  ]);
  return { index: trial.index, points, rank: ranks.get(trial.index) ?? 0, isWhole: trial.isWhole };
}

/** By place, not by value: one trial that went wild must not make all others look alike. */
function ranked(trials: Trial[], goal: "minimize" | "maximize"): Map<number, number> {
  const sign = goal === "minimize" ? 1 : -1;
  const valued = trials.filter((trial) => trial.value !== null);
  const order = valued.toSorted((a, b) => sign * ((a.value ?? 0) - (b.value ?? 0)));
  return new Map(order.map((trial, at) => [trial.index, order.length < 2 ? 1 : 1 - at / (order.length - 1)]));
}
