/** What the page of budgets asks, and what it changes. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, told, type Shape } from "@/api/client";
import { LATER_MS, SOON_MS } from "@/api/queries";
import type { Wanted } from "@/pages/budgets/words";

export function useBudgets() {
  return useQuery({
    queryKey: ["budgets"],
    queryFn: () => told(api.GET("/v1/budgets")),
    refetchInterval: SOON_MS,
  });
}

const NEWEST = 200;

/** Notices about jobs that a budget stopped or paused; the newest first. */
export function useStops() {
  return useQuery({
    queryKey: ["notices", "budget"],
    queryFn: () => told(api.GET("/v1/notices", { params: { query: { kind: "budget", limit: NEWEST } } })),
    refetchInterval: LATER_MS,
    select: ({ items }) => items.filter((one) => one.job !== null && one.severity === "critical"),
  });
}

/** The team of each project that they see. */
export function useProjectTeams() {
  return useQuery({
    queryKey: ["projects"],
    queryFn: () => told(api.GET("/v1/projects")),
    select: ({ items }) => Object.fromEntries(items.map((one) => [one.name, one.team])),
  });
}

export function useTeams() {
  return useQuery({
    queryKey: ["teams"],
    queryFn: () => told(api.GET("/v1/teams")),
    select: ({ items }) => items.map((one) => one.name),
  });
}

function useChange<Body>(change: (body: Body) => Promise<unknown>, onDone: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: async () => {
      onDone();
      await client.invalidateQueries({ queryKey: ["budgets"] });
    },
  });
}

export function useCreate(onDone: () => void) {
  return useChange((body: Wanted) => told(api.POST("/v1/budgets", { body })), onDone);
}

export function useEdit(id: string, onDone: () => void) {
  const path = { budget_id: id };
  return useChange(
    (body: Shape<"BudgetChange">) => told(api.PATCH("/v1/budgets/{budget_id}", { params: { path }, body })),
    onDone,
  );
}

export function useRemove(id: string, onDone: () => void) {
  const path = { budget_id: id };
  return useChange(() => told(api.DELETE("/v1/budgets/{budget_id}", { params: { path } })), onDone);
}
