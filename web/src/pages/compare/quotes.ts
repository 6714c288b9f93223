/** A comparison as rows of one market each, the cheapest first. */
import type { Shape } from "@/api/client";

export type Quote = Shape<"Quote">;
export type Side = Shape<"ComparedProvider">;

export interface Quoted {
  id: string;
  market: "on demand" | "spot";
  side: Side;
  quote: Quote;
}

export function quotesOf(sides: Side[], withSpot: boolean): Quoted[] {
  const found = sides.flatMap((side): Quoted[] => [
    ...(side.on_demand ? [row(side, "on demand", side.on_demand)] : []),
    ...(side.spot && withSpot ? [row(side, "spot", side.spot)] : []),
  ]);
  return found.sort((one, two) => costOf(one.quote) - costOf(two.quote));
}

function row(side: Side, market: Quoted["market"], quote: Quote): Quoted {
  return { id: `${side.provider} ${market}`, market, side, quote };
}

export function costOf(quote: Quote): number {
  return quote.total_usd ?? quote.price_per_hour_usd;
}

/** Providers that have the GPU, but nobody says for how much. */
export function unpricedOf(sides: Side[]): string[] {
  return sides.filter((side) => side.on_demand === null && side.spot === null).map((side) => side.provider);
}
