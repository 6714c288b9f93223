import { describe, expect, it } from "vitest";
import type { Shape } from "@/api/client";
import { concerns, isNearItsEnd } from "@/pages/overview/attention";

const NOW = new Date("2026-11-18T12:00:00Z");

function job(id: string, more: object = {}): Shape<"JobBrief"> {
  const told = { id, name: id, reason: null, health: "ok", created_at: NOW.toISOString(), started_at: null };
  return { ...told, finished_at: null, ...more } as Shape<"JobBrief">;
}

function budget(spent: number, left: number, thresholds = [0.5, 0.8, 1]): Shape<"Budget"> {
  const told = { id: `b${spent}`, scope: "team", name: "vision", limit_microusd: 100, runs_out_at: null };
  return { ...told, spent_microusd: spent, left_microusd: left, thresholds } as Shape<"Budget">;
}

describe("what somebody should look at", () => {
  it("the worst comes first, and what is well is left out", () => {
    const working = [job("slow", { health: "warning" }), job("fine"), job("stuck", { health: "critical" })];
    const failed = [job("broken", { finished_at: "2026-11-18T11:00:00Z" })];
    const found = concerns(working, failed, [budget(85, 15)], NOW);
    expect(found.map((one) => [one.title, one.state])).toEqual([
      ["stuck", "critical"],
      ["broken", "failed"],
      ["slow", "warning"],
      ["budget of team vision", "warning"],
    ]);
  });

  it("what failed days ago is no news", () => {
    expect(concerns([], [job("old", { finished_at: "2026-11-15T11:00:00Z" })], [], NOW)).toEqual([]);
  });

  it("a budget is near its end by its own thresholds, or when nothing is left", () => {
    expect([budget(79, 21), budget(80, 20), budget(10, 0), budget(99, 1, [])].map(isNearItsEnd)).toEqual([
      false,
      true,
      true,
      false,
    ]);
  });
});
