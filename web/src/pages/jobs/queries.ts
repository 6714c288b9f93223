import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, told } from "@/api/client";
import { LATER_MS, SOON_MS } from "@/api/queries";
import type { Filters } from "@/pages/jobs/filters";

/** How many there are in each state, of whomever the filters name. */
export function useCounts({ team, project, user }: Pick<Filters, "team" | "project" | "user">) {
  const query = Object.fromEntries(Object.entries({ team, project, user }).filter(([, value]) => value !== ""));
  return useQuery({
    queryKey: ["overview", query],
    queryFn: () => told(api.GET("/v1/overview", { params: { query } })),
    refetchInterval: SOON_MS,
    placeholderData: keepPreviousData,
  });
}

export function useTeams() {
  return useQuery({ queryKey: ["teams"], queryFn: () => told(api.GET("/v1/teams")), staleTime: LATER_MS });
}

export function useProjects() {
  return useQuery({ queryKey: ["projects"], queryFn: () => told(api.GET("/v1/projects")), staleTime: LATER_MS });
}
