import { describe, expect, test } from "vitest";
import { enablingOf, figuresOf, linesAbout, planRows, whyNot, type Option, type Plan } from "@/pages/submit/plan-rows";

const PART = {
  offer: "aws/us-east-1/use1-az1/p4d/spot",
  provider: "aws",
  region: "us-east-1",
  zone: "use1-az1",
  backend: "vm",
  instance_type: "p4d.24xlarge",
  gpu: "A100-40GB",
  gpus: 8,
  gpu_memory_gb: 40,
  market: "spot" as const,
  is_spot: true,
  price_per_hour_usd: 10,
  interruptions_per_hour: 0.02,
  availability: 0.9,
  as_of: "2026-01-01T00:00:00Z",
  source: "list",
  free_gpus: null,
  count: 1,
};

function option(changes: Partial<Option> = {}): Option {
  return {
    ...PART,
    parts: [PART],
    is_enabled: true,
    total_per_hour_usd: 10,
    start_s: 180,
    staging_hours: 0,
    work_hours: 6,
    estimated_hours: 6.18815,
    hours_p50: 6,
    hours_p90: 7,
    estimated_cost_usd: 62,
    cost_p50_usd: 60,
    cost_p90_usd: 70,
    egress_usd: 3.2,
    on_demand_cost_usd: 200,
    saving: 0.66,
    interruptions: 0.127,
    checkpoint_interval_s: 3098,
    reliability: 0.98,
    confidence: "low",
    usd_per_step: null,
    usd_per_token: null,
    price_age_s: 60,
    score: 1,
    why: "best balance",
    ...changes,
  };
}

function plan(changes: Partial<Plan> = {}): Plan {
  return {
    chosen: option(),
    alternatives: [],
    rejections: [],
    runnable: option(),
    considered: 6120,
    feasible: 84,
    ...changes,
  };
}

describe("the table of a plan", () => {
  test("a row says everything that one decides by", () => {
    expect(planRows(plan())).toEqual([
      {
        id: "1xaws/us-east-1/use1-az1/p4d/spot",
        isTicked: true,
        isPart: false,
        isEnabled: true,
        where: "aws/use1-az1",
        machines: "1 × p4d.24xlarge",
        gpus: "8 A100-40GB",
        market: "spot",
        perHour: "$10.00",
        start: "3 min",
        hours: "6.19",
        total: "$60.00–$70.00",
        risk: "2%",
        why: "best balance",
      },
    ]);
  });
  test("ticked is what submit would buy, and the better one that is not enabled stands beside it", () => {
    const best = option({ parts: [{ ...PART, offer: "gcp/x", provider: "gcp" }], provider: "gcp", is_enabled: false });
    const rows = planRows(plan({ chosen: best, alternatives: [option()] }));
    expect(rows.map((row) => [row.where, row.isTicked])).toEqual([
      ["aws/use1-az1", true],
      ["gcp/use1-az1", false],
    ]);
  });
  test("tasks in several places name each of them", () => {
    const other = { ...PART, offer: "aws/b", zone: "use1-az2", count: 3 };
    const rows = planRows(plan({ runnable: null, chosen: option({ parts: [PART, other], count: 4 }) }));
    expect(rows.map((row) => [row.where, row.machines, row.gpus])).toEqual([
      ["2 places", "4 machines", "32"],
      ["aws/use1-az1", "1 × p4d.24xlarge", "8 A100-40GB"],
      ["aws/use1-az2", "3 × p4d.24xlarge", "24 A100-40GB"],
    ]);
  });
  test("a gang of spot and on demand names how many of each", () => {
    const firm = { ...PART, market: "on-demand" as const, count: 2 };
    expect(planRows(plan({ runnable: null, chosen: option({ parts: [PART, firm] }) }))[0]?.market).toBe(
      "1 spot + 2 on-demand",
    );
  });
  test("where nobody knows how long it takes there is a price per hour and no total", () => {
    const unknown = { estimated_hours: null, estimated_cost_usd: null, cost_p50_usd: null, cost_p90_usd: null };
    const [row] = planRows(plan({ runnable: null, chosen: option(unknown) }));
    expect([row?.hours, row?.total, row?.perHour]).toEqual(["–", "–", "$10.00"]);
  });
  test("a workflow, whose steps have the machines, has no rows of its own", () =>
    expect(planRows({ chosen: null, alternatives: [], rejections: [] })).toEqual([]));
});

describe("what stands around it", () => {
  test("how many offers, how old the price, how far from the optimum", () =>
    expect(figuresOf(plan({ price_age_s: 7200, is_price_stale: true, bound: 0 }))).toBe(
      "1 of 6,120 offers · 84 fit · prices 2 h old (stale) · at most 0% from the optimum",
    ));
  test("saving, interruptions and data of the choice", () =>
    expect(linesAbout(option())).toEqual([
      "saves 66% against $200.00 on demand",
      "0.13 interruptions expected; checkpoint every 52 min",
      "data: $3.20 to move",
    ]));
  test("what is not enabled is said, and what submit would do instead", () => {
    const best = option({ is_enabled: false });
    expect(enablingOf(plan({ chosen: best }))).toContain("submit would use aws/use1-az1");
    expect(enablingOf(plan({ chosen: best, runnable: null }))).toContain("would refuse the job");
    expect(enablingOf(plan())).toBeNull();
  });
  test("reasons against the others, the nearest miss first", () => {
    const one = { ...PART, rule: "gpu", reason: "has none", offers: 15261 };
    const two = { ...PART, rule: "budget", reason: "too dear", offers: 1 };
    expect(whyNot(plan({ rejections: [one, two] }))).toEqual([
      { what: "aws/us-east-1 p4d.24xlarge", why: "too dear" },
      { what: "15,261 offers such as aws/us-east-1 p4d.24xlarge", why: "has none" },
    ]);
  });
});
