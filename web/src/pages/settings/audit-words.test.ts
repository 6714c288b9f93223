import { expect, it } from "vitest";
import { auditCommand, detailWords } from "@/pages/settings/audit-words";

it("details are written in one line", () => {
  expect(detailWords({ name: "hello", rule: { kind: "slow" }, old: null })).toBe(
    'name=hello rule={"kind":"slow"} old=null',
  );
});

it("the command asks for the same lines", () => {
  expect(auditCommand({})).toBe("crucible audit");
  expect(auditCommand({ user: "ada", subject: "team:vision" })).toBe("crucible audit --user ada --subject team:vision");
});
