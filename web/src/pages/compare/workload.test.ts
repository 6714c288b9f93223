import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { searchOf, specOf, USUAL, workloadOf } from "@/pages/compare/workload";

describe("a workload in an address", () => {
  test("comes back as it was put there", () => {
    const workload = { gpu: "H100", gpus: 16, hours: 2.5, isSpot: false };
    expect(workloadOf(searchOf(workload))).toEqual(workload);
  });
  test("what is missing or nonsense is as usual", () => {
    expect(workloadOf({})).toEqual(USUAL);
    expect(workloadOf({ gpu: "<b>", gpus: "x", hours: "-1" })).toEqual({ ...USUAL, hours: 0.01 });
  });
  test("is a job that can be planned", () => {
    const job = (parse(specOf(USUAL)) as { job: Record<string, unknown> }).job;
    expect(job["resources"]).toEqual({ gpus: 8, gpu_type: "A100", estimated_hours: 6 });
    expect(job["constraints"]).toEqual({ allow_spot: true });
  });
});
