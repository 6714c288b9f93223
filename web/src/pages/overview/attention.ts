/** What somebody should look at: jobs that are not well, that failed lately, and budgets that come to their end. */
import type { Shape } from "@/api/client";

export interface Concern {
  key: string;
  state: string;
  title: string;
  words: string;
  at: string | null;
  /** Of the job, or null for a budget. */
  jobId: string | null;
}

type Brief = Shape<"JobBrief">;
type Budget = Shape<"Budget">;

const LATELY_MS = 24 * 3600 * 1000;
const WORST_FIRST = ["critical", "failed", "warning"];

export function concerns(working: Brief[], failed: Brief[], budgets: Budget[], now: Date): Concern[] {
  const unwell = working.filter((one) => one.health === "critical" || one.health === "warning");
  const lately = failed.filter((one) => now.getTime() - Date.parse(one.finished_at ?? one.created_at) < LATELY_MS);
  const found = [
    ...unwell.map((one) => ofJob(one, one.health ?? "warning", one.reason ?? "something was found wrong with it")),
    ...lately.map((one) => ofJob(one, "failed", one.reason ?? "it failed")),
    ...budgets.filter(isNearItsEnd).map(ofBudget),
  ];
  return found.sort((a, b) => WORST_FIRST.indexOf(a.state) - WORST_FIRST.indexOf(b.state));
}

/** Past the last share of it that somebody wanted to be told of, or nothing is left. */
export function isNearItsEnd({ limit_microusd, spent_microusd, left_microusd, thresholds }: Budget): boolean {
  if (left_microusd <= 0) return true;
  const told = thresholds.filter((share) => share < 1);
  return told.length > 0 && spent_microusd >= Math.max(...told) * limit_microusd;
}

function ofJob(job: Brief, state: string, words: string): Concern {
  return { key: job.id, state, title: job.name, words, at: job.finished_at ?? job.started_at, jobId: job.id };
}

function ofBudget(budget: Budget): Concern {
  const title = `budget of ${[budget.scope, budget.name].filter(Boolean).join(" ")}`;
  const state = budget.left_microusd <= 0 ? "critical" : "warning";
  return { key: budget.id, state, title, words: "", at: budget.runs_out_at, jobId: null };
}
