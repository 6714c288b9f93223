/** Keys that work everywhere: the palette, help, and `g` followed by a letter for a page. Lists take j and k themselves
 * (useListKeys). Never while somebody writes. */
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
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

/** j and k go through a list, Enter opens what is chosen. Returns which one is, -1 for none. */
export function useListKeys(length: number, onOpen: (index: number) => void): number {
  const [chosen, setChosen] = useState(-1);
  const open = useRef(onOpen);
  useEffect(() => {
    open.current = onOpen;
  });
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if (event.metaKey || event.ctrlKey || event.altKey || isWriting(event)) return;
      if (event.key === "j") setChosen((now) => Math.min(now + 1, length - 1));
      else if (event.key === "k") setChosen((now) => Math.max(now - 1, 0));
      else if (event.key === "Enter" && event.target === document.body && chosen >= 0) open.current(chosen);
    };
    window.addEventListener("keydown", hear);
    return () => window.removeEventListener("keydown", hear);
  }, [length, chosen]);
  return Math.min(chosen, length - 1);
}
