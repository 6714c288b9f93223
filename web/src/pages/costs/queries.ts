/** What the costs page asks. Each answer is kept with the question as an address, so that a figure can be looked up again. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, told, type Shape } from "@/api/client";
import { LATER_MS } from "@/api/queries";
import { rangeOf, type Asked } from "@/pages/costs/asked";

export type CostReport = Shape<"CostReport">;

const MOST_ROWS = 500;
const MOST_CELLS = 10_000;

type Query = Record<string, string | number | boolean | undefined>;

function address(path: string, query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return `${path}?${new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()}`;
}

/** A report by one thing or two, such as `day,team`. */
export function reportQuery(asked: Asked, by: string) {
  const query = { by, ...rangeOf(asked), limit: by.includes(",") ? MOST_CELLS : MOST_ROWS, forecast: true };
  return {
    answer: address("/v1/costs", query),
    queryKey: ["costs", query],
    queryFn: async () => (await told(api.GET("/v1/costs", { params: { query } }))) as CostReport,
    refetchInterval: LATER_MS,
    enabled: asked.period !== null,
    placeholderData: keepPreviousData,
  };
}

export function savingsQuery(asked: Asked) {
  const query = { by: "market", ...rangeOf(asked) };
  return {
    answer: address("/v1/savings", query),
    queryKey: ["savings", query],
    queryFn: () => told(api.GET("/v1/savings", { params: { query } })),
    refetchInterval: LATER_MS,
    enabled: asked.period !== null,
    placeholderData: keepPreviousData,
  };
}

export function useAccuracy({ only: { gpu, team, provider } }: Asked) {
  const query = { by: "gpu", ...(gpu && { gpu }), ...(team && { team }), ...(provider && { provider }) };
  const asked = useQuery({
    queryKey: ["accuracy", query],
    queryFn: () => told(api.GET("/v1/predictions/accuracy", { params: { query } })),
    refetchInterval: LATER_MS,
  });
  return { query: asked, answer: address("/v1/predictions/accuracy", query) };
}

/** All rows, as a file. */
export function fileOf(asked: Asked, by: string, format: "csv" | "json"): Promise<Blob> {
  const query = { by, ...rangeOf(asked), format, limit: MOST_CELLS };
  return told(api.GET("/v1/costs", { params: { query }, parseAs: "blob" }));
}
