import { describe, expect, it } from "vitest";
import { mayKeep, partsOf, setCommand, sharesOf, toppedUp, written, type Budget } from "@/pages/budgets/words";
import type { Me } from "@/session/me";

function budget(limit: number, spent: number, reserved: number): Budget {
  return { limit_microusd: limit, spent_microusd: spent, reserved_microusd: reserved } as Budget;
}

describe("the bar", () => {
  it("is the limit, with what is left at its end", () => {
    expect(partsOf(budget(100, 50, 25))).toEqual({ spent: 0.5, reserved: 0.25, left: 0.25, limit: 1 });
  });
  it("goes on past the limit once more is spent", () => {
    expect(partsOf(budget(100, 180, 20))).toEqual({ spent: 0.9, reserved: 0.1, left: 0, limit: 0.5 });
  });
  it("of nothing is empty", () => {
    expect(partsOf(budget(0, 0, 0)).spent).toBe(0);
  });
});

it("a top-up loses no micro-dollar", () => {
  expect(toppedUp(budget(100_000, 0, 0), 0.2)).toBe(0.3);
});

it("shares are read as hundredths and written as they were", () => {
  expect(sharesOf("50, 80 95%")).toEqual([0.5, 0.8, 0.95]);
  expect(sharesOf("")).toEqual([]);
  expect(sharesOf("80, 120")).toBeNull();
  expect(sharesOf("most")).toBeNull();
  expect(written([0.5, 0.07])).toBe("50, 7");
});

it("the same on the command line", () => {
  const wanted = { scope: "team", name: "vision", period: "month", limit_usd: 500 } as const;
  expect(setCommand({ ...wanted, when_spent: "stop", thresholds: [0.5, 0.8] })).toBe(
    "crucible budget set team:vision 500 --per month --warn 0.5,0.8 --when-spent stop",
  );
});

describe("who may keep a budget", () => {
  const someone = (more: Partial<Me>): Me => ({ role: "member", grants: [], teams: {}, ...more }) as unknown as Me;
  const teams = { imagenet: "vision" };
  const team = { scope: "team", name: "vision" } as const;
  it("a manager that of the team and of its projects", () => {
    const manager = someone({ teams: { vision: "manager" } });
    expect(mayKeep(manager, team, teams)).toBe(true);
    expect(mayKeep(manager, { scope: "project", name: "imagenet" }, teams)).toBe(true);
    expect(mayKeep(manager, { scope: "server", name: "" }, teams)).toBe(false);
    expect(mayKeep(manager, { scope: "user", name: "ada" }, teams)).toBe(false);
  });
  it("a member none of the team's, an admin every one, a viewer and a token without that right none", () => {
    expect(mayKeep(someone({ teams: { vision: "member" } }), team, teams)).toBe(false);
    expect(mayKeep(someone({ role: "admin" }), { scope: "server", name: "" }, teams)).toBe(true);
    expect(mayKeep(someone({ role: "viewer" }), { scope: "job", name: "j" }, teams)).toBe(false);
    expect(mayKeep(someone({ role: "admin", grants: ["read"] }), team, teams)).toBe(false);
  });
});
