/** What is chosen on a page lives in its address, as text: it can be sent to somebody, and the way back works. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";

type Search = Record<string, string | undefined>;
type Change = (changes: Search) => void;

/** The address; how to change what stands in it; and the same for what one comes back from by the way back: a tab, a
 * choice of what is listed. */
export function useAddress(): [Search, Change, Change] {
  const search = useSearch({ strict: false }) as Search;
  const navigate = useNavigate();
  const to = useCallback(
    (changes: Search, replace: boolean) =>
      void navigate({
        to: ".",
        search: ((now: Search) => withoutEmpty({ ...now, ...changes })) as never,
        replace,
        resetScroll: false,
      }),
    [navigate],
  );
  const change = useCallback((changes: Search) => to(changes, true), [to]);
  const go = useCallback((changes: Search) => to(changes, false), [to]);
  return [search, change, go];
}

function withoutEmpty(search: Search): Search {
  return Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined && value !== ""));
}

/** Null for what is no whole number. */
export function numberOf(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : null;
}
