import { expect, test } from "vitest";
import { costOf, quotesOf, unpricedOf, type Quote, type Side } from "@/pages/compare/quotes";

const QUOTE: Quote = {
  instance_type: "p4d",
  region: "us-east-1",
  zone: "",
  count: 1,
  gpu: "A100",
  gpus: 8,
  price_per_hour_usd: 20,
  billed_s: 3600,
  total_usd: 20,
  availability: null,
  interruptions_per_hour: null,
  as_of: "2026-01-01T00:00:00Z",
  age_s: 1,
  is_stale: false,
  source: "list",
};
const SIDE: Side = {
  provider: "aws",
  is_enabled: true,
  on_demand: QUOTE,
  spot: { ...QUOTE, total_usd: 5 },
  start_s: 180,
  billing_unit_s: 1,
  billing_minimum_s: 60,
  regions: 2,
  offers: 4,
  priced: 4,
};
const SIDES = [SIDE, { ...SIDE, provider: "gcp", on_demand: { ...QUOTE, total_usd: 10 }, spot: null }];

test("each market is a row, the cheapest first", () =>
  expect(quotesOf(SIDES, true).map(({ id }) => id)).toEqual(["aws spot", "gcp on demand", "aws on demand"]));

test("without spot only what is firm", () =>
  expect(quotesOf(SIDES, false).map(({ id }) => id)).toEqual(["gcp on demand", "aws on demand"]));

test("who states no price is named apart", () =>
  expect(unpricedOf([...SIDES, { ...SIDE, provider: "alibaba", on_demand: null, spot: null }])).toEqual(["alibaba"]));

test("without hours the price of an hour is compared", () =>
  expect(costOf({ ...QUOTE, total_usd: null, price_per_hour_usd: 7 })).toBe(7));
