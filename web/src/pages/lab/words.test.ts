import { describe, expect, it } from "vitest";
import { failCommand, faultWords, labTime, micro, preemptCommand } from "@/pages/lab/words";

const RULE = {
  id: "f-1",
  kind: "slow",
  operation: null,
  probability: 1,
  count: null,
  since: null,
  until: null,
  seconds: null,
  status: null,
  machine: null,
  tag: null,
  region: null,
  type: null,
  asked: 0,
  struck: 0,
};

describe("the Lab's clock", () => {
  it("goes on as fast as it was started", () => {
    expect(labTime("2026-01-01T00:00:00Z", 60, 2000).toISOString()).toBe("2026-01-01T00:02:00.000Z");
  });
  it("never goes back when ours was set back", () => {
    expect(labTime("2026-01-01T00:00:00Z", 60, -5000).toISOString()).toBe("2026-01-01T00:00:00.000Z");
  });
});

describe("commands", () => {
  it("name machines, or all of them, or those of a region", () => {
    expect(preemptCommand(["i-1", "i-2"], 30)).toBe("crucible lab preempt i-1 i-2 --notice 30s");
    expect(preemptCommand("all", 0)).toBe("crucible lab preempt --all --notice 0s");
    expect(preemptCommand("all", 5, "us-east-1")).toBe("crucible lab preempt --region us-east-1 --notice 5s");
  });
  it("say a fault with what was chosen and nothing else, safe for a shell", () => {
    expect(failCommand({ kind: "throttle", operation: "Describe*", count: 2, for: "5m" })).toBe(
      "crucible lab fail --kind throttle --operation 'Describe*' --count 2 --for 5m",
    );
    expect(failCommand({ kind: "slow", seconds: [1, 5] })).toBe("crucible lab fail --kind slow --seconds 1..5");
  });
});

describe("words", () => {
  it("tell when a rule strikes", () => {
    expect(faultWords(RULE)).toBe("always");
    expect(faultWords({ ...RULE, probability: 0.125, seconds: [30, 30], region: "us-east-1" })).toBe(
      "12.5 % of the time, 30 s, in us-east-1",
    );
  });
  it("round no cost to nothing", () => {
    expect(micro(1)).toBe("$0.000001");
    expect(micro(null)).toBe("–");
  });
});
