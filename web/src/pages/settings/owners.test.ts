import { expect, it } from "vitest";
import { ownerOf, ownerOptions, ownerQuery } from "@/pages/settings/owners";

it("a secret of one's own names nobody", () => {
  expect(ownerQuery("user", "ada")).toEqual({});
  expect(ownerOptions("user", "ada")).toBe("");
  expect(ownerOf("")).toEqual({ kind: "user", owner: "" });
});

it("a team's or a project's says whose it is", () => {
  expect(ownerOf("team vision")).toEqual({ kind: "team", owner: "vision" });
  expect(ownerQuery("project", "cats")).toEqual({ project: "cats" });
  expect(ownerOptions("team", "vision")).toBe(" --team vision");
});
