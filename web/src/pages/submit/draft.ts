/** What somebody is writing: it survives a reload and other pages, in this tab, for that person alone. */
import { useCallback, useEffect, useState } from "react";
import type { CodeFile } from "@/pages/submit/package";

/** What the job's program is: files that were put here, or those of a job that it was cloned from. */
export type Code =
  { kind: "none" } | { kind: "files"; files: CodeFile[] } | { kind: "job"; digest: string; job: string };

export interface Draft {
  /** The address that it began from (`job:ID`, `template:NAME`, …): the same does not begin it anew. */
  origin: string;
  /** The text it began with: what differs from it would be lost. */
  begun: string;
  text: string;
  code: Code;
  /** The last that was confirmed, and the key it is sent with: sent again, it is the same job. */
  confirmed: { what: string; key: string } | null;
}

export const STARTER = `job:
  name: my-job
  command: echo hello from $HOSTNAME
  resources:
    gpus: 0
`;

export function draftFrom(origin: string, text: string, code: Code = { kind: "none" }): Draft {
  return { origin, begun: text, text, code, confirmed: null };
}

export function isTouched(draft: Draft): boolean {
  return draft.text !== draft.begun || draft.code.kind === "files";
}

/** The draft with a key for exactly this text and code: the one it has, if that is what was confirmed last. */
export function confirmedAs(draft: Draft, fresh: string): Draft & { confirmed: { what: string; key: string } } {
  const what = JSON.stringify([draft.text, draft.code]);
  return { ...draft, confirmed: draft.confirmed?.what === what ? draft.confirmed : { what, key: fresh } };
}

const place = (user: string) => `crucible.draft.${user}`;

export function stored(user: string): Draft {
  try {
    const found = JSON.parse(sessionStorage.getItem(place(user)) ?? "null") as Draft | null;
    if (found !== null) return found;
  } catch {
    // Storage is forbidden or holds something else: begin anew.
  }
  return draftFrom("", STARTER);
}

export function store(user: string, draft: Draft | null): void {
  try {
    if (draft === null) sessionStorage.removeItem(place(user));
    else sessionStorage.setItem(place(user), JSON.stringify(draft));
  } catch {
    // No room or no right to: it lives as long as the page does.
  }
}

export function useDraft(user: string): [Draft, (next: Draft) => void] {
  const [draft, setDraft] = useState(() => stored(user));
  const change = useCallback(
    (next: Draft) => {
      store(user, next);
      setDraft(next);
    },
    [user],
  );
  useWarning(isTouched(draft));
  return [draft, change];
}

/** The browser asks before the tab is closed with something unsent. */
function useWarning(isUnsent: boolean) {
  useEffect(() => {
    if (!isUnsent) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => window.removeEventListener("beforeunload", warn);
  }, [isUnsent]);
}
