/** Rules and channels in words, as commands, and between a form and the API. Pure. */
import type { Shape } from "@/api/client";
import type { Me } from "@/session/me";

export type Rule = Shape<"RuleItem">;
export type Channel = Shape<"ChannelItem">;
export type Kind = Rule["kinds"][number];
export type Level = Rule["least"];

export const KINDS: Kind[] = ["failure", "deadline", "budget", "stall", "provider", "leak", "price"];
export const LEVELS: Level[] = ["info", "warning", "critical"];

export interface RuleForm {
  name: string;
  /** "": one's own. */
  team: string;
  kinds: Kind[];
  least: Level;
  scopeKind: Rule["scope"]["kind"];
  scopeName: string;
  channels: string[];
  windowMin: number;
  price: { gpu: string; provider: string; market: string; below: number | null; dropPercent: number | null };
  isQuiet: boolean;
  quiet: NonNullable<Rule["quiet"]>;
}

const MINUTE_S = 60;

export function formOf(rule: Rule | undefined): RuleForm {
  return {
    name: rule?.name ?? "",
    team: rule?.team ?? "",
    kinds: rule?.kinds ?? [],
    least: rule?.least ?? "info",
    scopeKind: rule?.scope.kind ?? "server",
    scopeName: rule?.scope.name ?? "",
    channels: rule?.channels ?? [],
    windowMin: (rule?.window_s ?? 300) / MINUTE_S,
    price: {
      gpu: rule?.price?.gpu ?? "",
      provider: rule?.price?.provider ?? "",
      market: rule?.price?.market ?? "",
      below: rule?.price?.below_usd ?? null,
      dropPercent: rule?.price?.drop == null ? null : Number((rule.price.drop * 100).toFixed(4)),
    },
    isQuiet: rule?.quiet != null,
    quiet: rule?.quiet ?? { start: "22:00", end: "07:00", time_zone: "UTC", critical_passes: true },
  };
}

/** Of a rule that waits for a price. */
export function isAboutPrices({ kinds }: Pick<RuleForm, "kinds">): boolean {
  return kinds.includes("price");
}

export function bodyOf(form: RuleForm) {
  const { gpu, provider, market, below, dropPercent } = form.price;
  return {
    name: form.name,
    kinds: form.kinds,
    least: form.least,
    scope: { kind: form.scopeKind, name: form.scopeKind === "server" ? "" : form.scopeName },
    channels: form.channels,
    window_s: Math.round(form.windowMin * MINUTE_S),
    price: isAboutPrices(form)
      ? {
          gpu,
          provider,
          market: (market || null) as "on_demand" | "spot" | "reserved" | null,
          below_usd: below,
          drop: dropPercent === null ? null : dropPercent / 100,
        }
      : null,
    quiet: form.isQuiet ? form.quiet : null,
  };
}

/** What a rule tells of. */
export function aboutOf({ kinds, least, scope, price }: Rule): string {
  const what = kinds.length === 0 ? "everything" : kinds.join(", ");
  const level = least === "info" ? "" : `, ${least}${least === "critical" ? "" : " or worse"}`;
  const of = scope.kind === "server" ? "" : ` of ${scope.kind} ${scope.name}`;
  return `${what}${of}${level}${price ? `: ${wishOf(price)}` : ""}`;
}

function wishOf({ gpu, market, provider, below_usd, drop }: NonNullable<Rule["price"]>): string {
  const where = [market?.replace("_", " "), provider && `at ${provider}`].filter(Boolean).join(" ");
  const when = [below_usd != null && `below $${below_usd}/h`, drop != null && `cheaper by ${Math.round(drop * 100)}%`];
  return `${gpu}${where && ` ${where}`} ${when.filter(Boolean).join(" or ")}`;
}

export function ruleCommand(form: RuleForm, channels: Channel[]): string {
  const names = form.channels.map((id) => channels.find((one) => one.id === id)?.name ?? id);
  const { gpu, provider, market, below, dropPercent } = form.price;
  const words = [
    ["--kind", form.kinds.join(",")],
    ["--least", form.least === "info" ? "" : form.least],
    ["--of", form.scopeKind === "server" ? "" : `${form.scopeKind}:'${form.scopeName}'`],
    ["--team", form.team],
    ...(isAboutPrices(form)
      ? [
          ["--gpu", gpu],
          ["--below", below === null ? "" : String(below)],
          ["--drop", dropPercent === null ? "" : `${dropPercent}%`],
          ["--provider", provider],
        ]
      : []),
    ...(form.isQuiet
      ? [
          ["--quiet-hours", `${form.quiet.start}-${form.quiet.end}`],
          ["--zone", form.quiet.time_zone],
        ]
      : []),
    ...names.map((name) => ["--to", name]),
  ].flatMap(([option, value]) => (value ? [`${option} ${value}`] : []));
  const spot = isAboutPrices(form) && market === "spot" ? ["--spot"] : [];
  return ["crucible alert add", form.name || "NAME", ...words, ...spot].join(" ");
}

/** A person's are theirs; a team's are kept by its managers. */
export function mayKeep(me: Me | undefined, { user, team }: { user: string; team: string | null }): boolean {
  if (!mayHave(me)) return false;
  if (me?.role === "admin") return true;
  return team === null ? me?.user_id === user : me?.teams[team] === "manager";
}

/** Whether they may have alerts of their own. */
export function mayHave(me: Me | undefined): boolean {
  return me !== undefined && me.role !== "viewer" && (me.grants.length === 0 || me.grants.includes("manage"));
}

/** Those that a rule of this owner may send to. */
export function usable(channels: Channel[], team: string, user: string | undefined): Channel[] {
  return channels.filter((one) => (team ? one.team === team : one.team === null && one.user === user));
}
