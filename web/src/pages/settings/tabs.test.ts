import { expect, it } from "vitest";
import { manages, tabsFor } from "@/pages/settings/tabs";
import type { Me } from "@/session/me";

const me = (role: Me["role"], teams: Me["teams"] = {}): Me => ({
  name: "ada",
  user_id: "ada",
  role,
  teams,
  grants: [],
  token_id: "t",
});
const names = (who: Me | undefined) => tabsFor(who).map((tab) => tab.name);

it("everybody has what is theirs, managers and admins more", () => {
  expect(names(me("member"))).toEqual(["health", "tokens", "secrets", "teams", "about"]);
  expect(names(me("member", { vision: "manager" }))).toContain("audit");
  expect(names(me("member", { vision: "manager" }))).not.toContain("retention");
  expect(names(me("admin"))).toHaveLength(8);
  expect(names(undefined)).not.toContain("people");
});

it("a viewer of the server manages nothing, whatever a team says", () => {
  expect(manages(me("viewer", { vision: "manager" }), "vision")).toBe(false);
  expect(manages(me("member", { vision: "manager" }), "vision")).toBe(true);
  expect(manages(me("member", { vision: "member" }), "vision")).toBe(false);
  expect(manages(me("admin"), "vision")).toBe(true);
});
