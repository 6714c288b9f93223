/** What somebody writes, letter by letter, and what is kept of it when they pause. Where what is kept changes otherwise,
 * by the way back for one, that is what is written then. */
import { useDebouncedCallback } from "@mantine/hooks";
import { useState } from "react";

export function useWritten(
  kept: string,
  onPause: (text: string) => void,
  pauseMs: number,
): [string, (text: string) => void] {
  const [now, setNow] = useState({ text: kept, kept, sent: kept });
  const settle = useDebouncedCallback((text: string) => {
    setNow((was) => ({ ...was, sent: text }));
    onPause(text);
  }, pauseMs);
  if (kept !== now.kept) setNow(kept === now.sent ? { ...now, kept } : { text: kept, kept, sent: kept });
  const write = (text: string) => {
    setNow((was) => ({ ...was, text }));
    settle(text);
  };
  return [now.text, write];
}
