import { describe, expect, it } from "vitest";
import { hoursOf, periodOf, SPANS, written } from "@/pages/costs/periods";

const NOW = new Date("2026-11-18T05:25:31Z");

function told(said: string): string | null {
  const found = periodOf(said, NOW);
  return found && `${written(found.from)} ${written(found.to)}`;
}

describe("periods as people say them", () => {
  it.each([
    ["today", "2026-11-18T00:00Z 2026-11-19T00:00Z"],
    ["yesterday", "2026-11-17T00:00Z 2026-11-18T00:00Z"],
    ["24h", "2026-11-17T06:00Z 2026-11-18T06:00Z"],
    ["7d", "2026-11-12T00:00Z 2026-11-19T00:00Z"],
    ["2w", "2026-11-05T00:00Z 2026-11-19T00:00Z"],
    ["this month", "2026-11-01T00:00Z 2026-12-01T00:00Z"],
    ["last month", "2026-10-01T00:00Z 2026-11-01T00:00Z"],
    ["last year", "2025-01-01T00:00Z 2026-01-01T00:00Z"],
    ["2026", "2026-01-01T00:00Z 2027-01-01T00:00Z"],
    ["2026-02", "2026-02-01T00:00Z 2026-03-01T00:00Z"],
    ["2026-11-18", "2026-11-18T00:00Z 2026-11-19T00:00Z"],
    ["2026-11-01..2026-11-15", "2026-11-01T00:00Z 2026-11-16T00:00Z"],
  ])("%s", (said, expected) => {
    expect(told(said)).toBe(expected);
  });

  it.each(["", "soon", "0d", "2026-13", "2026-02-31", "2026-11-15..2026-11-01", "2026..2026..2026"])(
    "%s is none",
    (said) => expect(told(said)).toBeNull(),
  );

  it("every one that is offered is understood, and is of whole hours", () => {
    for (const said of SPANS) {
      const found = periodOf(said, NOW);
      expect(found && hoursOf(found) % 1).toBe(0);
    }
  });
});
