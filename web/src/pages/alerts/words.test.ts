import { describe, expect, it } from "vitest";
import { aboutOf, bodyOf, formOf, mayKeep, ruleCommand, usable, type Channel, type Rule } from "@/pages/alerts/words";
import type { Me } from "@/session/me";

const RULE: Rule = {
  id: "rule-1",
  name: "cheap",
  user: "ann",
  team: "vision",
  kinds: ["price"],
  least: "info",
  scope: { kind: "server", name: "" },
  price: { gpu: "H100", provider: "aws", market: "spot", below_usd: 2, drop: 0.2 },
  channels: ["channel-1"],
  quiet: { start: "22:00", end: "07:00", time_zone: "Europe/Berlin", critical_passes: false },
  window_s: 600,
  enabled: true,
  muted_until: null,
  created_at: "2026-11-18T00:00:00Z",
};
const CHANNEL = { id: "channel-1", name: "me", user: "ann", team: "vision" } as Channel;

describe("a rule and its form", () => {
  it("come to the same", () => {
    const { name, kinds, least, scope, price, channels, quiet, window_s } = RULE;
    expect(bodyOf(formOf(RULE))).toEqual({ name, kinds, least, scope, price, channels, quiet, window_s });
  });

  it("an empty one asks for everything, at no hour quiet, and waits for no price", () => {
    const body = bodyOf(formOf(undefined));
    expect(body).toMatchObject({ kinds: [], least: "info", scope: { kind: "server", name: "" }, window_s: 300 });
    expect([body.price, body.quiet]).toEqual([null, null]);
  });

  it("what was written about prices goes when the rule is no longer about them", () => {
    expect(bodyOf({ ...formOf(RULE), kinds: ["failure"] }).price).toBeNull();
  });
});

it("is told in words", () => {
  expect(aboutOf(RULE)).toBe("price: H100 spot at aws below $2/h or cheaper by 20%");
  const other = { ...RULE, kinds: [], price: null, least: "warning", scope: { kind: "job", name: "train-*" } } as Rule;
  expect(aboutOf(other)).toBe("everything of job train-*, warning or worse");
});

it("the same on the command line", () => {
  expect(ruleCommand(formOf(RULE), [CHANNEL])).toBe(
    "crucible alert add cheap --kind price --team vision --gpu H100 --below 2 --drop 20% --provider aws" +
      " --quiet-hours 22:00-07:00 --zone Europe/Berlin --to me --spot",
  );
});

it("a rule goes to channels of its owner alone", () => {
  const own = { ...CHANNEL, id: "channel-2", team: null };
  expect(usable([CHANNEL, own], "vision", "ann")).toEqual([CHANNEL]);
  expect(usable([CHANNEL, own], "", "ann")).toEqual([own]);
  expect(usable([CHANNEL, own], "", "bob")).toEqual([]);
});

it("a team's are kept by its managers, a person's by that person and admins", () => {
  const someone = (more: Partial<Me>): Me =>
    ({ role: "member", user_id: "bob", grants: [], teams: {}, ...more }) as unknown as Me;
  expect(mayKeep(someone({ teams: { vision: "manager" } }), RULE)).toBe(true);
  expect(mayKeep(someone({ teams: { vision: "member" } }), RULE)).toBe(false);
  expect(mayKeep(someone({}), { user: "bob", team: null })).toBe(true);
  expect(mayKeep(someone({}), { user: "ann", team: null })).toBe(false);
  expect(mayKeep(someone({ role: "admin" }), { user: "ann", team: null })).toBe(true);
  expect(mayKeep(someone({ role: "viewer" }), { user: "bob", team: null })).toBe(false);
});
