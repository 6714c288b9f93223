/** What the page of a job asks. While the job works it is asked again; what is over stays as it is. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, told, type Shape } from "@/api/client";
import { LATER_MS, SOON_MS } from "@/api/queries";

export type Job = Shape<"JobView">;
export type JobStatus = Shape<"JobStatus">;

export const TERMINAL = new Set(["completed", "failed", "cancelled"]);

const at = (jobId: string) => ({ path: { job_id: jobId } });
const key = (jobId: string, ...more: unknown[]) => ["job", jobId, ...more];

/** Where an answer comes from, for figures (Told): a job itself, or `costs` of it. */
export function answerOf(jobId: string, what?: string): string {
  return ["/v1/jobs", jobId, ...(what ? [what] : [])].join("/");
}

export function useJob(jobId: string) {
  return useQuery({
    queryKey: key(jobId),
    queryFn: () => told(api.GET("/v1/jobs/{job_id}", { params: at(jobId) })),
    refetchInterval: (query) => (query.state.data && TERMINAL.has(query.state.data.status) ? LATER_MS : SOON_MS),
  });
}

/** `isOver`: nothing changes any more, so it is asked once. */
function useOf<T>(jobId: string, name: unknown[], ask: () => Promise<T>, isOver: boolean, every = SOON_MS) {
  return useQuery({
    queryKey: key(jobId, ...name, isOver),
    queryFn: ask,
    refetchInterval: isOver ? false : every,
    placeholderData: keepPreviousData,
  });
}

export function useStatus(jobId: string, isOver: boolean) {
  return useQuery({
    queryKey: key(jobId, "status", isOver),
    queryFn: () => told(api.GET("/v1/jobs/{job_id}/status", { params: at(jobId) })),
    refetchInterval: ({ state }) => pace(isOver, state.data?.cost.per_hour_usd),
    placeholderData: keepPreviousData,
  });
}

export function useCosts(jobId: string, isOver: boolean) {
  return useQuery({
    queryKey: key(jobId, "costs"),
    queryFn: () => told(api.GET("/v1/jobs/{job_id}/costs", { params: at(jobId) })),
    refetchInterval: ({ state }) => pace(isOver, state.data?.per_hour_usd),
  });
}

/** Machines are charged for a little longer than the job runs. */
export function pace(isOver: boolean, perHourUsd: number | undefined): number {
  return isOver && perHourUsd === 0 ? LATER_MS : SOON_MS;
}

export function useAttempts(jobId: string, isOver: boolean) {
  return useOf(jobId, ["attempts"], () => told(api.GET("/v1/jobs/{job_id}/attempts", { params: at(jobId) })), isOver);
}

export function useCheckpoints(jobId: string, task: number, isOver: boolean) {
  const params = { ...at(jobId), query: { task } };
  const ask = () => told(api.GET("/v1/jobs/{job_id}/checkpoints", { params }));
  return useOf(jobId, ["checkpoints", task], ask, isOver, LATER_MS);
}

export function useEvents(jobId: string, isFull: boolean, isOver: boolean) {
  const params = { ...at(jobId), query: { all: isFull } };
  const ask = () => told(api.GET("/v1/jobs/{job_id}/events", { params }));
  return useOf(jobId, ["events", isFull], ask, isOver);
}

export function useFindings(jobId: string, isOver: boolean) {
  return useOf(jobId, ["findings"], () => told(api.GET("/v1/jobs/{job_id}/findings", { params: at(jobId) })), isOver);
}

export function useTasks(jobId: string, isWanted: boolean, isOver: boolean) {
  return useQuery({
    queryKey: key(jobId, "tasks", isOver),
    queryFn: () => told(api.GET("/v1/jobs/{job_id}/tasks", { params: { ...at(jobId), query: { limit: 1000 } } })),
    enabled: isWanted,
    refetchInterval: isOver ? false : SOON_MS,
  });
}

/** Attempts of one task. A job of several tasks has those of all in one list. */
export function useAttemptsOf(job: Job, task: number, isOver: boolean) {
  const attempts = useAttempts(job.id, isOver);
  const hasTasks = job.execution_mode !== "single_cluster";
  const tasks = useTasks(job.id, hasTasks, isOver);
  const taskId = tasks.data?.items.find((one) => one.index === task)?.id;
  const items = attempts.data?.items ?? [];
  return { attempts, items: hasTasks ? items.filter((one) => one.task_id === taskId) : items };
}

export function useSpec(jobId: string) {
  return useQuery({
    queryKey: key(jobId, "spec"),
    queryFn: async () => {
      const asked = api.GET("/v1/jobs/{job_id}/spec", {
        params: at(jobId),
        headers: { accept: "application/json" },
      });
      return (await told(asked)) as Shape<"Spec">;
    },
    staleTime: Infinity,
  });
}

export function useLaunchScript(jobId: string, task: number, isWanted: boolean) {
  const params = { ...at(jobId), query: { task } };
  return useQuery({
    queryKey: key(jobId, "script", task),
    queryFn: () => told(api.GET("/v1/jobs/{job_id}/launch-script", { params })),
    enabled: isWanted,
  });
}

export interface ChartAsked {
  task: number;
  of: "metrics" | "usage";
  rank: number | null;
}

/** As many points as a screen shows, whatever the length of the job. */
const CHART_POINTS = 1500;

function chartQuery({ task, of, rank }: ChartAsked) {
  return { task, of, max_points: CHART_POINTS, ...(rank !== null && { rank }) };
}

export function chartAnswer(jobId: string, asked: ChartAsked): string {
  const query = Object.entries(chartQuery(asked)).map(([name, value]) => [name, String(value)]);
  return `${answerOf(jobId, "metrics")}?${new URLSearchParams(query).toString()}`;
}

export function useChart(jobId: string, asked: ChartAsked, isOver: boolean) {
  const { task, of, rank } = asked;
  const query = chartQuery(asked);
  const ask = () => told(api.GET("/v1/jobs/{job_id}/metrics", { params: { ...at(jobId), query } }));
  return useOf(jobId, ["chart", of, task, rank], ask, isOver, SOON_MS * 2);
}

export function useKept() {
  return useQuery({ queryKey: ["kept"], queryFn: () => told(api.GET("/v1/kept")), refetchInterval: LATER_MS });
}
