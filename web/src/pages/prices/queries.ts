import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, told } from "@/api/client";
import { LATER_MS } from "@/api/queries";
import type { Filters } from "@/pages/prices/filters";

/** Empty words are not asked for. */
function words({ gpu, provider, region, instance }: Filters) {
  return {
    gpu: gpu || undefined,
    provider: provider || undefined,
    region: region || undefined,
    instance_type: instance || undefined,
  };
}

export function offersQuery(filters: Filters) {
  const { market, maxPrice, sort, limit } = filters;
  const spot = market === "" ? undefined : market === "spot";
  const query = { ...words(filters), spot, max_price: maxPrice ?? undefined, sort, limit };
  return queryOptions({
    queryKey: ["offers", query],
    queryFn: ({ signal }) => told(api.GET("/v1/offers", { params: { query }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: LATER_MS,
  });
}

export function pricesQuery(filters: Filters) {
  const query = { ...words(filters), market: filters.market || undefined, limit: 100 };
  return infiniteQueryOptions({
    queryKey: ["prices", query],
    queryFn: ({ signal, pageParam }) =>
      told(api.GET("/v1/prices", { params: { query: { ...query, cursor: pageParam } }, signal })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
  });
}

export function historyQuery(filters: Filters, since: string) {
  const query = {
    provider: filters.provider || undefined,
    region: filters.region || undefined,
    instance_type: filters.instance || undefined,
    market: filters.market || undefined,
    since,
    limit: 500,
  };
  return queryOptions({
    queryKey: ["prices", "history", query],
    queryFn: ({ signal }) => told(api.GET("/v1/prices/history", { params: { query }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: LATER_MS,
  });
}

export const sourcesQuery = queryOptions({
  queryKey: ["prices", "sources"],
  queryFn: () => told(api.GET("/v1/prices/sources")),
  refetchInterval: LATER_MS,
});
