/** What settings show, and what can be changed there. */
import { useInfiniteQuery, useMutation, useQuery, useQueryClient, type QueryKey } from "@tanstack/react-query";
import { api, told, type Shape } from "@/api/client";
import { LATER_MS } from "@/api/queries";

export type Token = Shape<"TokenItem">;
export type User = Shape<"UserItem">;
export type Team = Shape<"TeamItem">;
export type Project = Shape<"ProjectItem">;
export type Secret = Shape<"SecretItem">;
export type Grant = Token["grants"][number];

export const useHealth = () =>
  useQuery({ queryKey: ["health"], queryFn: () => told(api.GET("/v1/health")), refetchInterval: LATER_MS });

/** Asks the provider itself, so only when somebody wants to know. */
export function useProviderHealth(provider: string | null) {
  return useQuery({
    queryKey: ["health", provider],
    queryFn: () => told(api.GET("/v1/health/{provider}", { params: { path: { provider: provider ?? "" } } })),
    enabled: provider !== null,
    staleTime: LATER_MS,
  });
}

export const useTokens = () => useQuery({ queryKey: ["tokens"], queryFn: () => told(api.GET("/v1/tokens")) });
export const useUsers = () => useQuery({ queryKey: ["users"], queryFn: () => told(api.GET("/v1/users")) });
export const useTeams = () => useQuery({ queryKey: ["teams"], queryFn: () => told(api.GET("/v1/teams")) });
export const useProjects = () => useQuery({ queryKey: ["projects"], queryFn: () => told(api.GET("/v1/projects")) });
export const useSecrets = () => useQuery({ queryKey: ["secrets"], queryFn: () => told(api.GET("/v1/secrets")) });
export const useRetention = () => useQuery({ queryKey: ["retention"], queryFn: () => told(api.GET("/v1/retention")) });
export const useVersion = () => useQuery({ queryKey: ["version"], queryFn: () => told(api.GET("/v1/version")) });

export function useMembers(team: string | null) {
  return useQuery({
    queryKey: ["members", team],
    queryFn: () => told(api.GET("/v1/teams/{team}/members", { params: { path: { team: team ?? "" } } })),
    enabled: team !== null,
  });
}

export interface AuditFilter {
  team?: string;
  user?: string;
  subject?: string;
}

export function useAudit(filter: AuditFilter) {
  return useInfiniteQuery({
    queryKey: ["audit", filter],
    queryFn: ({ pageParam }) =>
      told(api.GET("/v1/audit", { params: { query: { ...filter, before: pageParam ?? undefined, limit: 50 } } })),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => page.next_before,
    refetchInterval: LATER_MS,
  });
}

export function useSeal() {
  return useMutation({ mutationFn: () => told(api.GET("/v1/audit/seal")) });
}

/** A change, after which what `stale` names is asked again. */
export function useChange<Given, Answer>(
  change: (given: Given) => Promise<Answer>,
  stale: QueryKey[],
  onDone: (answer: Answer) => void = () => undefined,
) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: async (answer) => {
      onDone(answer);
      await Promise.all(stale.map((queryKey) => client.invalidateQueries({ queryKey })));
    },
  });
}
