import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, told } from "@/api/client";
import { LATER_MS } from "@/api/queries";
import type { Workload } from "@/pages/compare/workload";

export function comparisonQuery({ gpu, gpus, hours }: Workload) {
  return queryOptions({
    queryKey: ["compare", gpu, gpus, hours],
    queryFn: ({ signal }) => told(api.GET("/v1/compare", { params: { query: { gpu, gpus, hours } }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: LATER_MS,
  });
}

/** Which GPUs there are at all, by name. */
export const gpusQuery = queryOptions({
  queryKey: ["offers", "by gpu"],
  queryFn: () => told(api.GET("/v1/offers", { params: { query: { group_by: "gpu", limit: 200 } } })),
  staleTime: 5 * 60_000,
});
