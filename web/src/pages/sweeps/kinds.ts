/** Jobs that are made of many parts, and what each is called. */
import type { Shape } from "@/api/client";

export type Kind = "search" | "workflow" | "evaluation" | "batch";

export const KINDS: { kind: Kind; title: string; command: string }[] = [
  { kind: "search", title: "Searches", command: "crucible submit examples/sweep/sweep.yaml" },
  { kind: "workflow", title: "Workflows", command: "crucible submit examples/workflow/workflow.yaml" },
  { kind: "evaluation", title: "Evaluations", command: "crucible submit examples/sweep/eval.yaml" },
  { kind: "batch", title: "Batches", command: "crucible submit examples/inference/batch.yaml" },
];

const BY_TYPE: Record<string, Kind> = { hpo: "search", eval: "evaluation", inference: "batch" };

/** Null: a job of one piece. */
export function kindOf(job: Pick<Shape<"JobBrief">, "job_type" | "steps">): Kind | null {
  return job.steps > 0 ? "workflow" : (BY_TYPE[job.job_type] ?? null);
}

/** The command that shows the same. */
export function showCommand(kind: Kind | null, jobId: string): string {
  const command = { search: "sweep show", workflow: "workflow show", evaluation: "eval show", batch: "shards" };
  return `crucible ${kind === null ? "describe" : command[kind]} ${jobId}`;
}
