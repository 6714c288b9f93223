import { expect, it } from "vitest";
import { byUrgency, problemsOf, providersOf } from "@/pages/settings/checks";

const check = (name: string, subject: string, status: "ok" | "warning" | "critical" | "unknown") => ({
  name,
  subject,
  status,
  words: "",
  advice: "",
  details: {},
});

it("what is wrong comes first, then by name", () => {
  const found = byUrgency([
    check("b", "", "ok"),
    check("a", "", "ok"),
    check("c", "", "critical"),
    check("d", "", "warning"),
  ]);
  expect(found.map((one) => one.name)).toEqual(["c", "d", "a", "b"]);
});

it("providers are named once, whatever regions they have", () => {
  const checks = [
    check("provider", "aws/us-east-1", "ok"),
    check("provider", "aws/eu", "ok"),
    check("queue", "x", "ok"),
  ];
  expect(providersOf(checks)).toEqual(["aws"]);
});

it("a provider's words are read whatever they are", () => {
  expect(
    problemsOf({ status: "sick", region: "r", problems: ["no quota"], zones: ["a", "b"], quotas: { P: 1 } }),
  ).toEqual({
    region: "r",
    problems: ["no quota"],
    facts: 'zones: a, b\nquotas: {"P":1}',
  });
  expect(problemsOf({ status: "healthy" })).toEqual({ region: null, problems: [], facts: "" });
});
