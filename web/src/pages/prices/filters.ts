/** What is looked for among prices and offers, in the address. */

export interface Filters {
  gpu: string;
  provider: string;
  region: string;
  instance: string;
  /** spot, on_demand, or both. */
  market: "" | "spot" | "on_demand";
  maxPrice: number | null;
  sort: "gpu_price" | "price" | "name";
  limit: number;
}

type Search = Record<string, string | undefined>;

export const PAGE = 50;
export const MOST = 500;

const SORTS = ["gpu_price", "price", "name"] as const;
const MARKETS = ["spot", "on_demand"] as const;

export function filtersOf(search: Search): Filters {
  const most = Number(search["max"]);
  const limit = Math.round(Number(search["limit"]));
  return {
    gpu: search["gpu"] ?? "",
    provider: search["provider"] ?? "",
    region: search["region"] ?? "",
    instance: search["instance"] ?? "",
    market: MARKETS.find((one) => one === search["market"]) ?? "",
    maxPrice: search["max"] && most >= 0 ? most : null,
    sort: SORTS.find((one) => one === search["sort"]) ?? "gpu_price",
    limit: limit > PAGE && limit <= MOST ? limit : PAGE,
  };
}

/** What is as usual stands in no address. */
export function searchOf(filters: Filters): Search {
  const { gpu, provider, region, instance, market, maxPrice, sort, limit } = filters;
  return {
    gpu: gpu || undefined,
    provider: provider || undefined,
    region: region || undefined,
    instance: instance || undefined,
    market: market || undefined,
    max: maxPrice === null ? undefined : String(maxPrice),
    sort: sort === "gpu_price" ? undefined : sort,
    limit: limit === PAGE ? undefined : String(limit),
  };
}

/** The same on the command line. */
export function commandOf({ gpu, provider, region, instance, market, maxPrice, sort }: Filters): string {
  const said = [
    gpu && `--gpu ${gpu}`,
    provider && `--provider ${provider}`,
    region && `--region ${region}`,
    instance && `--instance-type ${instance}`,
    market === "spot" && "--spot",
    market === "on_demand" && "--on-demand",
    maxPrice !== null && `--max-price ${maxPrice}`,
    sort !== "gpu_price" && `--sort ${sort}`,
  ];
  return ["crucible offers", ...said.filter(Boolean)].join(" ");
}
