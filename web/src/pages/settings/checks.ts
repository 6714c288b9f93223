/** Checks in the order in which they want to be read, and a provider's own words. */
import type { Shape } from "@/api/client";

type Check = Shape<"SystemCheck">;

const URGENCY: Check["status"][] = ["critical", "warning", "unknown", "ok"];

export function byUrgency(checks: Check[]): Check[] {
  const of = (check: Check) => URGENCY.indexOf(check.status);
  return checks.toSorted((a, b) => of(a) - of(b) || `${a.name} ${a.subject}`.localeCompare(`${b.name} ${b.subject}`));
}

export function providersOf(checks: Check[]): string[] {
  const named = checks.filter((check) => check.name === "provider").map((check) => check.subject.split("/")[0] ?? "");
  return [...new Set(named)].filter(Boolean).sort();
}

const SHOWN = ["region", "problems", "status"];

/** Providers tell what they like: where, what is wrong, and the rest line by line. */
export function problemsOf(place: Record<string, unknown>): {
  region: string | null;
  problems: string[];
  facts: string;
} {
  const { region, problems } = place;
  const told = Object.entries(place).filter(([name]) => !SHOWN.includes(name));
  const facts = told.map(([name, value]) => `${name}: ${written(value)}`);
  return {
    region: typeof region === "string" ? region : null,
    problems: Array.isArray(problems) ? problems.map(String) : [],
    facts: facts.join("\n"),
  };
}

function written(value: unknown): string {
  if (Array.isArray(value)) return value.map(written).join(", ");
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
}
