import { expect, it } from "vitest";
import { commandOf, toggled } from "@/pages/jobs/filters";

const NONE = { status: "", words: "", team: "", project: "", user: "" };

it("a state is chosen and no longer chosen", () => {
  expect(toggled("", "failed")).toBe("failed");
  expect(toggled("failed", "running")).toBe("failed,running");
  expect(toggled("failed,running", "failed")).toBe("running");
});

it("the same list on the command line", () => {
  expect(commandOf(NONE)).toBe("crucible ps -a");
  expect(commandOf({ ...NONE, status: "failed,running", team: "two words", words: "loss" })).toBe(
    "crucible ps -a --status failed --status running --team 'two words'",
  );
});
