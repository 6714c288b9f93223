/** Trials as they are drawn and written. */
import type { Shape } from "@/api/client";
import type { Value } from "@/pages/sweeps/axis";
import type { Trial } from "@/pages/sweeps/parallel";

type TaskView = Shape<"TaskView">;

export function drawable(tasks: TaskView[], parameters: string[]): Trial[] {
  return tasks.map((task) => ({
    index: task.index,
    params: Object.fromEntries(parameters.map((name) => [name, paramOf(task, name)])),
    value: task.value ?? task.value_so_far,
    isWhole: task.phase === "succeeded" && task.verdict !== "pruned",
  }));
}

export function paramOf(task: { params: TaskView["params"] }, name: string): Value {
  const value: unknown = task.params?.[name];
  if (value === null || value === undefined) return null;
  return typeof value === "number" || typeof value === "string" || typeof value === "boolean"
    ? value
    : JSON.stringify(value);
}

/** What became of it, in a word: a verdict says more than the phase. */
export function outcome(task: Pick<TaskView, "phase" | "verdict">): string {
  if (task.verdict !== null) return task.verdict;
  return task.phase === "succeeded" ? "completed" : task.phase;
}
