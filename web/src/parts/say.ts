/** Short messages in a corner. What shows them is fetched when there is something to say. */
import type { NotificationData } from "@mantine/notifications";
import { useSyncExternalStore } from "react";

let isNeeded = false;
const listeners = new Set<() => void>();

export function say(message: NotificationData): void {
  isNeeded = true;
  for (const listener of listeners) listener();
  void import("@mantine/notifications").then(({ notifications }) => notifications.show(message));
}

/** Whether anything was ever said. */
export function useIsSaid(): boolean {
  return useSyncExternalStore(subscribe, () => isNeeded);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
