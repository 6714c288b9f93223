import { expect, it } from "vitest";
import { askedOf, commandOf, narrowedTo, rangeOf } from "@/pages/costs/asked";

const NOW = new Date("2026-11-18T05:25:31Z");

it("an empty address asks for this month by team, by day", () => {
  const asked = askedOf({}, NOW);
  expect(asked).toMatchObject({ by: "team", step: "day", only: {}, span: "this month" });
  expect(rangeOf(asked)).toEqual({ from: "2026-11-01T00:00Z", to: "2026-12-01T00:00Z" });
});

it("short periods are told by hour, long ones and jobs never", () => {
  expect(askedOf({ for: "24h" }, NOW).step).toBe("hour");
  expect(askedOf({ for: "24h", step: "day" }, NOW).step).toBe("day");
  expect(askedOf({ for: "7d", step: "hour" }, NOW).step).toBe("hour");
  expect(askedOf({ for: "30d", step: "hour" }, NOW).step).toBe("day");
  expect(askedOf({ for: "24h", by: "job" }, NOW).step).toBe("day");
});

it("costs of single jobs are of whole days, and the command says which", () => {
  const asked = askedOf({ for: "24h", by: "job" }, NOW);
  expect(rangeOf(asked)).toEqual({ from: "2026-11-17T00:00Z", to: "2026-11-19T00:00Z" });
  expect(commandOf("costs", "job", asked)).toBe("crucible costs --by job --for 2026-11-17..2026-11-18");
  expect(askedOf({ for: "7d", by: "job" }, NOW).span).toBe("7d");
});

it("what is no period is told apart from a default", () => {
  expect(askedOf({ for: "soon" }, NOW).period).toBeNull();
});

it("a row leads to what it is made of", () => {
  expect(narrowedTo("vision", askedOf({ by: "team" }, NOW))).toEqual({ by: "project", team: "vision" });
});

it("the same on the command line", () => {
  const asked = askedOf({ for: "last month", by: "user", team: "vision", instance_type: "p4d.24xlarge" }, NOW);
  expect(commandOf("costs", "user", asked)).toBe(
    "crucible costs --by user --for 'last month' --team vision --instance-type p4d.24xlarge",
  );
});
