/** Changes of prices as lines over time. A price holds until the next change, and from the last one until now. */
import type { Shape } from "@/api/client";

export type Change = Shape<"PriceChange">;

export interface Series {
  name: string;
  values: (number | null)[];
  now: number | null;
  low: number | null;
  high: number | null;
  changes: number;
  last: string;
}

export const MOST_LINES = 8;

export function seriesOf(changes: Change[], until: Date): { x: number[]; series: Series[] } {
  const times = changes.map((one) => Date.parse(one.as_of) / 1000);
  const x = [...new Set([...times, until.getTime() / 1000])].sort((one, two) => one - two);
  const names = [...new Set(changes.map(nameOf))];
  const series = names.map((name) =>
    lineOf(
      name,
      changes.filter((one) => nameOf(one) === name),
      x,
    ),
  );
  return { x, series: series.sort((one, two) => two.changes - one.changes || one.name.localeCompare(two.name)) };
}

function nameOf({ provider, region, zone, instance_type, market }: Change): string {
  const where = zone === "" || zone === "*" ? region : zone; // one price may hold for every zone
  return `${provider}/${where} ${instance_type} ${market.replace("_", "-")}`;
}

function lineOf(name: string, changes: Change[], x: number[]): Series {
  const at = new Map(changes.map((one) => [Date.parse(one.as_of) / 1000, one.price_per_hour_usd]));
  let price: number | null = null;
  const values = x.map((time) => (price = at.get(time) ?? (at.has(time) ? null : price)));
  const told = changes.flatMap(({ price_per_hour_usd: one }) => (one === null ? [] : [one]));
  return {
    name,
    values,
    now: price,
    low: told.length > 0 ? Math.min(...told) : null,
    high: told.length > 0 ? Math.max(...told) : null,
    changes: changes.length - 1,
    last: changes[changes.length - 1]?.as_of ?? "",
  };
}
