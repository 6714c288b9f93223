/** What is chosen on a page lives in its address, as text: it can be sent to somebody, and the way back works. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";

type Search = Record<string, string | undefined>;

export function useAddress(): [Search, (changes: Search) => void] {
  const search = useSearch({ strict: false }) as Search;
  const navigate = useNavigate();
  const change = useCallback(
    (changes: Search) =>
      void navigate({
        to: ".",
        search: ((now: Search) => withoutEmpty({ ...now, ...changes })) as never,
        replace: true,
        resetScroll: false,
      }),
    [navigate],
  );
  return [search, change];
}

function withoutEmpty(search: Search): Search {
  return Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined && value !== ""));
}

/** Null for what is no whole number. */
export function numberOf(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : null;
}
