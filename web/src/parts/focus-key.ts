import { useEffect, type RefObject } from "react";
import { isWriting } from "@/shell/shortcuts";

/** `/` goes to where one looks for something. */
export function useFocusKey(input: RefObject<HTMLInputElement | null>): void {
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.metaKey || event.ctrlKey || event.altKey || isWriting(event)) return;
      event.preventDefault();
      input.current?.focus();
    };
    window.addEventListener("keydown", hear);
    return () => window.removeEventListener("keydown", hear);
  }, [input]);
}
