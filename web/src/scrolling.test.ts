import { expect, it, vi } from "vitest";
import { rememberScroll } from "@/scrolling";

interface Told {
  fromLocation: unknown;
  toLocation: unknown;
}

/** A way through the page as the router tells it, and where the window was scrolled to. */
function walk() {
  const hear: Record<string, (told: Told) => void> = {};
  const subscribe = (what: string, listener: (told: Told) => void) => ((hear[what] = listener), () => undefined);
  rememberScroll({ subscribe: subscribe as never });
  const scrolled = vi.spyOn(window, "scrollTo").mockImplementation(() => undefined);
  scrolled.mockClear();
  const at = (href: string, key: string) => ({ href, state: { __TSR_key: key } });
  const go = (fromLocation: unknown, toLocation: unknown, top: number) => {
    Object.defineProperty(window, "scrollY", { value: top, configurable: true });
    hear["onBeforeLoad"]?.({ fromLocation, toLocation });
    hear["onRendered"]?.({ fromLocation, toLocation });
  };
  return { at, go, scrolled };
}

it("a page that one comes back to is where one left it, and a new one is not scrolled", () => {
  const { at, go, scrolled } = walk();
  go(at("/jobs", "a"), at("/costs", "b"), 700);
  expect(scrolled).not.toHaveBeenCalled();
  go(at("/costs", "b"), at("/jobs", "a"), 0);
  expect(scrolled).toHaveBeenLastCalledWith({ top: 700 });
});

it("the same address visited anew is not scrolled", () => {
  const { at, go, scrolled } = walk();
  go(at("/jobs", "a"), at("/costs", "b"), 700);
  go(at("/costs", "b"), at("/jobs", "c"), 0);
  expect(scrolled).not.toHaveBeenCalled();
});
