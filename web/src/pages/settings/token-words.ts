/** Tokens in words. */
import type { Grant, Token } from "@/pages/settings/queries";

export const GRANTS: { grant: Grant; words: string; isForAdmins?: boolean }[] = [
  { grant: "read", words: "look at jobs, costs, prices, teams" },
  { grant: "jobs", words: "submit and change jobs, datasets, templates" },
  { grant: "manage", words: "teams, projects, tokens, and what else managers do" },
  { grant: "admin", words: "users, hosts, providers", isForAdmins: true },
  { grant: "metrics", words: "collect metrics, and nothing else", isForAdmins: true },
];

export type TokenState = "valid" | "expired" | "revoked";

export function tokenState(token: Pick<Token, "revoked_at" | "expires_at">, now: Date): TokenState {
  if (token.revoked_at !== null) return "revoked";
  return token.expires_at !== null && new Date(token.expires_at) <= now ? "expired" : "valid";
}

export interface NewToken {
  name: string;
  grants: Grant[];
  /** Null: it never expires. */
  days: number | null;
}

export function expiresAt({ days }: NewToken, now: Date): string | null {
  return days === null ? null : new Date(now.getTime() + days * 86_400_000).toISOString();
}

export function createCommand({ name, grants, days }: NewToken): string {
  const options = [...grants.map((grant) => ` --grant ${grant}`), days === null ? "" : ` --expires ${days}`];
  return `crucible token create ${/^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", `'\\''`)}'`}${options.join("")}`;
}
