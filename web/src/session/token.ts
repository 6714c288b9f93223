/** The token this browser signed in with, shared by its tabs. */
import { useSyncExternalStore } from "react";

const KEY = "crucible.token";
const listeners = new Set<() => void>();
let told: { token: string | null; isRefused: boolean } = { token: stored(), isRefused: false };

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // storage is forbidden: the token lives as long as the page
  }
}

function tell(token: string | null, isRefused: boolean) {
  told = { token, isRefused };
  for (const listener of listeners) listener();
}

export function token(): string | null {
  return told.token;
}

export function signIn(value: string): void {
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // Then only this tab knows it.
  }
  tell(value, false);
}

/** `isRefused`: the server no longer takes it, so the sign-in page says why it is shown. */
export function signOut(isRefused = false): void {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // There was none.
  }
  tell(null, isRefused);
}

window.addEventListener("storage", (event) => {
  if (event.key === KEY) tell(event.newValue, false);
});

export function useSession() {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => told,
  );
}
