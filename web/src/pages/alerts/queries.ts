/** What the page of alerts asks, and what it changes. */
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, told, type Shape } from "@/api/client";
import { LATER_MS } from "@/api/queries";
import type { Level } from "@/pages/alerts/words";

const PAGE = 30;

export function useNotices(kind: string, least: Level) {
  return useInfiniteQuery({
    queryKey: ["notices", "feed", kind, least],
    queryFn: ({ pageParam: before }) =>
      told(api.GET("/v1/notices", { params: { query: { kind, least, limit: PAGE, ...(before && { before }) } } })),
    initialPageParam: null as number | null,
    getNextPageParam: ({ next_before }) => next_before,
    refetchInterval: LATER_MS,
  });
}

export function useDeliveries(seq: number) {
  return useQuery({
    queryKey: ["notices", seq, "deliveries"],
    queryFn: () => told(api.GET("/v1/notices/{seq}/deliveries", { params: { path: { seq } } })),
    refetchInterval: LATER_MS,
  });
}

export function useRules() {
  return useQuery({
    queryKey: ["alerts", "rules"],
    queryFn: () => told(api.GET("/v1/alerts/rules")),
    refetchInterval: LATER_MS,
  });
}

export function useChannels() {
  return useQuery({
    queryKey: ["alerts", "channels"],
    queryFn: () => told(api.GET("/v1/alerts/channels")),
    refetchInterval: LATER_MS,
  });
}

function useChange<Body, Answer>(change: (body: Body) => Promise<Answer>, onDone: (answer: Answer) => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: async (answer) => {
      onDone(answer);
      await client.invalidateQueries({ queryKey: ["alerts"] });
    },
  });
}

export function useAddRule(onDone: () => void) {
  return useChange((body: Shape<"RuleNew">) => told(api.POST("/v1/alerts/rules", { body })), onDone);
}

export function useChangeRule(onDone: () => void) {
  return useChange(
    ({ id, ...body }: Shape<"RuleChange"> & { id: string }) =>
      told(api.PATCH("/v1/alerts/rules/{rule_id}", { params: { path: { rule_id: id } }, body })),
    onDone,
  );
}

export function useRemoveRule(onDone: () => void) {
  return useChange(
    (id: string) => told(api.DELETE("/v1/alerts/rules/{rule_id}", { params: { path: { rule_id: id } } })),
    onDone,
  );
}

export function useAddChannel(onDone: (made: Shape<"ChannelMade">) => void) {
  return useChange((body: Shape<"ChannelNew">) => told(api.POST("/v1/alerts/channels", { body })), onDone);
}

const path = (id: string) => ({ params: { path: { alert_channel_id: id } } });

export function useTestChannel() {
  return useMutation({
    mutationFn: (id: string) => told(api.POST("/v1/alerts/channels/{alert_channel_id}/test", path(id))),
  });
}

export function useRotate(onDone: (made: Shape<"ChannelMade">) => void) {
  return useChange(
    (id: string) => told(api.POST("/v1/alerts/channels/{alert_channel_id}/rotate", { ...path(id), body: {} })),
    onDone,
  );
}

export function useRemoveChannel(onDone: () => void) {
  return useChange((id: string) => told(api.DELETE("/v1/alerts/channels/{alert_channel_id}", path(id))), onDone);
}
