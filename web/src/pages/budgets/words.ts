/** Budgets in words, figures of their bars, and what a form means. Pure. */
import type { Shape } from "@/api/client";
import type { Me } from "@/session/me";

export type Budget = Shape<"Budget">;
export type Scope = Budget["scope"];
export const SCOPES: Scope[] = ["team", "project", "user", "job", "server"];

const MICRO = 1_000_000;

export function nameOf({ scope, name }: Pick<Budget, "scope" | "name">): string {
  return scope === "server" ? "the whole server" : `${scope} ${name}`;
}

export interface Parts {
  spent: number;
  reserved: number;
  left: number;
  /** Where the limit stands: less than 1 once more was spent than that. */
  limit: number;
}

/** As shares of a bar: of the limit, or of what is spent and reserved where that is more. */
export function partsOf({ limit_microusd, spent_microusd, reserved_microusd }: Budget): Parts {
  const whole = Math.max(limit_microusd, spent_microusd + reserved_microusd, 1);
  const [spent, reserved] = [spent_microusd / whole, reserved_microusd / whole];
  return { spent, reserved, left: Math.max(0, 1 - spent - reserved), limit: limit_microusd / whole };
}

/** The new limit, exact to a micro-dollar. */
export function toppedUp({ limit_microusd }: Pick<Budget, "limit_microusd">, amountUsd: number): number {
  return (limit_microusd + Math.round(amountUsd * MICRO)) / MICRO;
}

/** "50, 80, 95" of a hundred; null: that is no list of shares. */
export function sharesOf(text: string): number[] | null {
  const words = text.split(/[\s,;%]+/).filter(Boolean);
  const found = words.map(Number);
  return found.every((one) => one > 0 && one <= 100) ? found.map((one) => Number((one / 100).toFixed(6))) : null;
}

export function written(shares: number[]): string {
  return shares.map((share) => Number((share * 100).toFixed(4))).join(", ");
}

export interface Wanted {
  scope: Scope;
  name: string;
  period: Budget["period"];
  limit_usd: number;
  when_spent: Budget["when_spent"];
  thresholds: number[];
}

export function setCommand({ scope, name, period, limit_usd, when_spent, thresholds }: Wanted): string {
  const whose = scope === "server" ? "server" : `${scope}:${name || "NAME"}`;
  const per = period === "month" ? " --per month" : "";
  const warn = thresholds.length > 0 ? ` --warn ${thresholds.join(",")}` : "";
  return `crucible budget set ${whose} ${limit_usd}${per}${warn} --when-spent ${when_spent}`;
}

/** The team that a budget's managers manage; null where only an admin, or a job's owner, may. */
function teamOf({ scope, name }: Pick<Budget, "scope" | "name">, teams: Record<string, string>): string | null {
  if (scope === "team") return name;
  return scope === "project" ? (teams[name] ?? null) : null;
}

/** `teams`: of the projects. Whose job it is, the server says. */
export function mayKeep(me: Me | undefined, budget: Pick<Budget, "scope" | "name">, teams: Record<string, string>) {
  if (!mayKeepAny(me)) return false;
  if (me?.role === "admin" || budget.scope === "job") return true;
  const team = teamOf(budget, teams);
  return team !== null && me?.teams[team] === "manager";
}

/** Whether there is any that they may set: everybody may set those of their own jobs. */
export function mayKeepAny(me: Me | undefined): boolean {
  return me !== undefined && me.role !== "viewer" && (me.grants.length === 0 || me.grants.includes("manage"));
}
