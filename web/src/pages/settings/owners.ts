/** Whose a secret is, in the words of a request and of a command. */
import type { Secret } from "@/pages/settings/queries";

type Kind = Secret["owner_kind"];

export function ownerQuery(kind: Kind, owner: string): { team?: string; project?: string } {
  return kind === "user" ? {} : { [kind]: owner };
}

export function ownerOptions(kind: Kind, owner: string): string {
  return kind === "user" ? "" : ` --${kind} ${owner}`;
}

/** "team vision" of a list of choices; nothing: one's own. */
export function ownerOf(choice: string): { kind: Kind; owner: string } {
  const [kind, ...owner] = choice.split(" ");
  return kind === "team" || kind === "project" ? { kind, owner: owner.join(" ") } : { kind: "user", owner: "" };
}
