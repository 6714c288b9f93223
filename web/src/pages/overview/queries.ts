/** What the first page asks: sums, what runs, what waits, what went wrong. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, told, type Shape } from "@/api/client";
import { LATER_MS, SOON_MS } from "@/api/queries";

export function useOverview() {
  return useQuery({
    queryKey: ["overview", {}],
    queryFn: () => told(api.GET("/v1/overview")),
    refetchInterval: SOON_MS,
    placeholderData: keepPreviousData,
  });
}

/** Jobs in these states, the newest first. */
export function useJobsIn(status: string, limit: number) {
  return useQuery({
    queryKey: ["jobs", "in", status, limit],
    queryFn: () => told(api.GET("/v1/jobs", { params: { query: { status, limit } } })),
    refetchInterval: SOON_MS,
    placeholderData: keepPreviousData,
  });
}

/** Without a beginning: this month. */
export function useSpent(tz: string, from: string | null) {
  const query = { tz, limit: 1, ...(from !== null && { from }) };
  return useQuery({
    queryKey: ["spent", tz, from],
    queryFn: async () => (await told(api.GET("/v1/costs", { params: { query } }))) as Shape<"CostReport">,
    refetchInterval: LATER_MS,
  });
}

export function useBudgets() {
  return useQuery({
    queryKey: ["budgets"],
    queryFn: () => told(api.GET("/v1/budgets")),
    refetchInterval: LATER_MS,
  });
}
