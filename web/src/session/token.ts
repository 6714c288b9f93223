/** The token this browser signed in with, shared by its tabs. */
import { useSyncExternalStore } from "react";

const KEY = "crucible.token";
/** There while nobody is signed in because the server refused the last token. */
const REFUSED = "crucible.refused";
const listeners = new Set<() => void>();
let told: { token: string | null; isRefused: boolean } = { token: stored(KEY), isRefused: stored(REFUSED) !== null };

function stored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // storage is forbidden: the token lives as long as the page
  }
}

function store(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // Then only this tab knows it.
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
  store(REFUSED, null);
  store(KEY, value);
  tell(value, false);
}

/** `isRefused`: the server no longer takes it, so the sign-in page says why it is shown, in every tab. */
export function signOut(isRefused = false): void {
  store(REFUSED, isRefused ? "yes" : null); // before the token: other tabs look when that changes
  store(KEY, null);
  tell(null, isRefused);
}

window.addEventListener("storage", (event) => {
  if (event.key === KEY) tell(event.newValue, stored(REFUSED) !== null);
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
