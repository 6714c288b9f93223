/** What the Lab page asks, and what it can do. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, told, type Shape } from "@/api/client";
import { LATER_MS, SOON_MS } from "@/api/queries";

export type LabView = Shape<"LabView">;
export type LabMachine = Shape<"LabMachineItem">;
export type Fault = Shape<"LabFault">;
export type FaultKind = Shape<"LabFaultKind">;
export type NewFault = Shape<"NewFault">;
export type Preemption = Shape<"Preempt">;

export function useLab(all: boolean) {
  return useQuery({
    queryKey: ["lab", { all }],
    queryFn: () => told(api.GET("/v1/lab", { params: { query: { all } } })),
    refetchInterval: SOON_MS,
    placeholderData: (before) => before,
  });
}

export function useBill() {
  return useQuery({
    queryKey: ["lab", "bill"],
    queryFn: () => told(api.GET("/v1/lab/bill")),
    refetchInterval: 2 * SOON_MS,
  });
}

export function useNotes() {
  return useQuery({
    queryKey: ["lab", "events"],
    queryFn: () => told(api.GET("/v1/lab/events", { params: { query: { limit: 200 } } })),
    refetchInterval: SOON_MS,
  });
}

export function useFaults() {
  return useQuery({
    queryKey: ["lab", "faults"],
    queryFn: () => told(api.GET("/v1/lab/faults")),
    refetchInterval: SOON_MS,
  });
}

/** The cheapest machine of each GPU that is on sale in a region. */
export function usePricesIn(region: string) {
  const query = { provider: "aws", region, group_by: "gpu" as const, limit: 4 };
  return useQuery({
    queryKey: ["offers", query],
    queryFn: () => told(api.GET("/v1/offers", { params: { query } })),
    refetchInterval: LATER_MS,
  });
}

export function useConsole(machine: string | null) {
  return useQuery({
    queryKey: ["lab", "console", machine],
    queryFn: () =>
      told(api.GET("/v1/lab/machines/{machine}/console", { params: { path: { machine: machine ?? "" } } })),
    enabled: machine !== null,
    refetchInterval: SOON_MS,
  });
}

function useChange<Body, Answer>(change: (body: Body) => Promise<Answer>, onDone: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: async () => {
      onDone();
      await client.invalidateQueries({ queryKey: ["lab"] });
    },
  });
}

export function usePreempt(onDone: () => void) {
  return useChange((body: Preemption) => told(api.POST("/v1/lab/preempt", { body })), onDone);
}

export function useFail(onDone: () => void) {
  return useChange((body: NewFault) => told(api.POST("/v1/lab/faults", { body })), onDone);
}

export function useMend(onDone: () => void) {
  return useChange((name: string) => told(api.DELETE("/v1/lab/faults/{name}", { params: { path: { name } } })), onDone);
}
