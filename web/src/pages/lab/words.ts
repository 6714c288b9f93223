/** The Lab in words: its own clock, its money, and what is done here as commands. */
import { usd } from "@/parts/words";
import type { Fault, NewFault } from "@/pages/lab/queries";

/** What the Lab's clock says now, `elapsedMs` here after it was asked. */
export function labTime(asked: string, speed: number, elapsedMs: number): Date {
  return new Date(new Date(asked).getTime() + Math.max(0, elapsedMs) * speed);
}

export function secondsBetween(from: string, to: string): number {
  return (new Date(to).getTime() - new Date(from).getTime()) / 1000;
}

export function micro(cost: number | null): string {
  return usd(cost === null ? null : cost / 1_000_000);
}

export function preemptCommand(machines: string[] | "all", noticeS: number, region?: string): string {
  const which = machines === "all" ? (region ? `--region ${region}` : "--all") : machines.join(" ");
  return `crucible lab preempt ${which} --notice ${noticeS}s`;
}

const OPTIONS = [
  "operation",
  "probability",
  "count",
  "at",
  "for",
  "status",
  "machine",
  "tag",
  "region",
  "type",
] as const;

/** A word that a shell leaves alone, or quotes around it. */
function quoted(word: string): string {
  return /^[\w.,:=/@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function failCommand(rule: NewFault): string {
  const options = OPTIONS.flatMap((name) => (rule[name] == null ? [] : [`--${name} ${quoted(String(rule[name]))}`]));
  const { seconds } = rule;
  if (seconds != null) options.push(`--seconds ${Array.isArray(seconds) ? seconds.join("..") : seconds}`);
  return ["crucible lab fail", `--kind ${rule.kind}`, ...options].join(" ");
}

/** Where, how often and for whom a rule strikes. */
export function faultWords(rule: Fault): string {
  const parts = [
    rule.operation && `in ${rule.operation}`,
    rule.probability < 1 && `${Math.round(rule.probability * 1000) / 10} % of the time`,
    rule.count !== null && `${rule.count} times`,
    rule.seconds && `${[...new Set(rule.seconds)].join(" to ")} s`,
    rule.status !== null && `answers ${rule.status}`,
    rule.machine && `of ${rule.machine}`,
    rule.tag && `tagged ${rule.tag}`,
    rule.region && `in ${rule.region}`,
    rule.type && `of type ${rule.type}`,
  ];
  return parts.filter(Boolean).join(", ") || "always";
}
