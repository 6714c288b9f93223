/** Keys that work everywhere: the palette, help, and `g` followed by a letter for a page. Lists take j and k themselves
 * (useListKeys). Never while somebody writes. */
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useEffectEvent, useMemo, useRef, useState } from "react";
import { DESTINATIONS } from "@/shell/nav";

const PAUSE_MS = 1_200;

export function isWriting(event: KeyboardEvent): boolean {
  const at = event.target;
  return (
    at instanceof HTMLElement &&
    (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) || at.closest("[role=dialog]") !== null)
  );
}

export function useShortcuts({ onPalette, onHelp }: { onPalette: () => void; onHelp: () => void }) {
  const navigate = useNavigate();
  const goneAt = useRef(0);
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        onPalette();
        return;
      }
      if (event.metaKey || event.ctrlKey || event.altKey || isWriting(event)) return;
      if (event.key === "?") onHelp();
      else if (event.key === "g") goneAt.current = event.timeStamp;
      else if (event.timeStamp - goneAt.current < PAUSE_MS) {
        goneAt.current = 0;
        const found = DESTINATIONS.find((one) => one.key === event.key);
        if (found) {
          event.preventDefault();
          void navigate({ to: found.to });
        }
      }
    };
    window.addEventListener("keydown", hear);
    return () => window.removeEventListener("keydown", hear);
  }, [navigate, onPalette, onHelp]);
}

export interface ListKeys {
  /** Which one is chosen; -1 for none. */
  chosen: number;
  /** Changes whenever a key has moved the choice: then it should come into view, and take the focus. */
  moves: number;
}

/** j and k go through a list. What is chosen stays so when others come and go; `first` is where one begins. */
export function useListKeys(ids: readonly string[], first: () => number): ListKeys {
  const [now, setNow] = useState<{ id: string | null; moves: number }>({ id: null, moves: 0 });
  const chosen = useMemo(() => (now.id === null ? -1 : ids.indexOf(now.id)), [ids, now.id]);
  const move = useEffectEvent((by: 1 | -1) => {
    const to = chosen < 0 ? first() : chosen + by;
    const id = ids[Math.min(Math.max(to, 0), ids.length - 1)];
    if (id !== undefined) setNow(({ moves }) => ({ id, moves: moves + 1 }));
  });
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if (event.metaKey || event.ctrlKey || event.altKey || isWriting(event)) return;
      if (event.key === "j") move(1);
      else if (event.key === "k") move(-1);
    };
    window.addEventListener("keydown", hear);
    return () => window.removeEventListener("keydown", hear);
  }, []);
  return { chosen, moves: now.moves };
}
