/** Machines that work, GPUs that are free, and own hosts. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, told, type Shape } from "@/api/client";
import { asApiError } from "@/api/errors";
import { LATER_MS, SOON_MS } from "@/api/queries";

export type Node = Shape<"NodeItem">;
export type Host = Shape<"HostItem">;
export type Pool = Shape<"CapacityPool">;

export function useNodes() {
  return useQuery({ queryKey: ["nodes"], queryFn: () => told(api.GET("/v1/nodes")), refetchInterval: SOON_MS });
}

export function useCapacity() {
  return useQuery({
    queryKey: ["capacity"],
    queryFn: () => told(api.GET("/v1/capacity")),
    refetchInterval: LATER_MS / 3,
  });
}

/** Null: this server keeps none. */
export function useHosts() {
  return useQuery({ queryKey: ["hosts"], queryFn: hosts, refetchInterval: LATER_MS / 3 });
}

async function hosts(): Promise<Host[] | null> {
  try {
    return (await told(api.GET("/v1/hosts"))).items;
  } catch (error) {
    if (asApiError(error).code === "conflict") return null;
    throw error;
  }
}

export type HostDeed = "check" | "drain" | "resume" | "remove";

export function useHostDeed(onDone: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ name, deed, force }: { name: string; deed: HostDeed; force: boolean }) => done(name, deed, force),
    onSuccess: async () => {
      onDone();
      await client.invalidateQueries({ queryKey: ["hosts"] });
      await client.invalidateQueries({ queryKey: ["capacity"] });
    },
  });
}

function done(name: string, deed: HostDeed, force: boolean): Promise<unknown> {
  const params = { path: { name } };
  switch (deed) {
    case "check":
      return told(api.POST("/v1/hosts/{name}/check", { params }));
    case "drain":
      return told(api.POST("/v1/hosts/{name}/drain", { params, body: null }));
    case "resume":
      return told(api.POST("/v1/hosts/{name}/resume", { params }));
    case "remove":
      return told(api.DELETE("/v1/hosts/{name}", { params: { ...params, query: { force } } }));
  }
}
