/** What is asked about searches, workflows, evaluations and batches. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { api, told, type Shape } from "@/api/client";
import { LATER_MS, SOON_MS } from "@/api/queries";

export type Brief = Shape<"JobBrief">;
export type JobView = Shape<"JobView">;
export type Trial = Shape<"TaskView">;
export type Step = Shape<"Step">;

/** Of a list, and of trials: as much as the server gives at once. */
const JOBS = 200;
export const MOST_TRIALS = 1000;

const OVER = new Set(["completed", "failed", "cancelled"]);

/** What has ended changes no more. */
export function often(status: string | undefined): number | false {
  return status !== undefined && OVER.has(status) ? false : SOON_MS;
}

export function useMany() {
  return useInfiniteQuery({
    queryKey: ["jobs", "many"],
    queryFn: ({ pageParam }) =>
      told(api.GET("/v1/jobs", { params: { query: { limit: JOBS, cursor: pageParam ?? undefined } } })),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: LATER_MS / 3,
  });
}

export function useJob(jobId: string) {
  return useQuery({
    queryKey: ["job", jobId],
    queryFn: () => told(api.GET("/v1/jobs/{job_id}", { params: { path: { job_id: jobId } } })),
    refetchInterval: ({ state }) => often(state.data?.status),
  });
}

export function useSweep(jobId: string) {
  return useQuery({
    queryKey: ["job", jobId, "sweep"],
    queryFn: () => told(api.GET("/v1/jobs/{job_id}/sweep", { params: { path: { job_id: jobId } } })),
    refetchInterval: ({ state }) => often(state.data?.status),
  });
}

/** The best first. */
export function useTrials(job: JobView) {
  const query = { order: "value" as const, limit: MOST_TRIALS };
  return useQuery({
    queryKey: ["job", job.id, "trials"],
    queryFn: () => told(api.GET("/v1/jobs/{job_id}/tasks", { params: { path: { job_id: job.id }, query } })),
    refetchInterval: often(job.status),
  });
}

export function useWorkflow(jobId: string) {
  return useQuery({
    queryKey: ["job", jobId, "workflow"],
    queryFn: () => told(api.GET("/v1/jobs/{job_id}/workflow", { params: { path: { job_id: jobId } } })),
    refetchInterval: ({ state }) => often(state.data?.status),
  });
}

export function useEvaluation(jobId: string) {
  const query = { limit: 100 };
  return useQuery({
    queryKey: ["job", jobId, "evaluation"],
    queryFn: () => told(api.GET("/v1/jobs/{job_id}/evaluation", { params: { path: { job_id: jobId }, query } })),
    refetchInterval: ({ state }) => often(state.data?.status),
  });
}

export function useShards(job: JobView) {
  const query = { limit: 200 };
  return useQuery({
    queryKey: ["job", job.id, "shards"],
    queryFn: () => told(api.GET("/v1/jobs/{job_id}/shards", { params: { path: { job_id: job.id }, query } })),
    refetchInterval: often(job.status),
  });
}
