/** Going back shows a page where one left it. The window alone: what scrolls inside a page knows better where it should
 * be, a log that follows its end above all. */
import type { AnyRouter } from "@tanstack/react-router";

interface Location {
  href: string;
  state: { __TSR_key?: string | undefined };
}

export function rememberScroll(router: Pick<AnyRouter, "subscribe">): void {
  const places = new Map<string, number>();
  router.subscribe("onBeforeLoad", ({ fromLocation }) => {
    if (fromLocation) places.set(keyOf(fromLocation), window.scrollY);
  });
  router.subscribe("onRendered", ({ toLocation }) => {
    const top = places.get(keyOf(toLocation));
    if (top !== undefined) window.scrollTo({ top });
  });
}

/** Of one visit: the same address may be visited twice. */
function keyOf({ href, state }: Location): string {
  return state.__TSR_key ?? href;
}
