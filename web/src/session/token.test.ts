import { afterEach, beforeEach, expect, it, vi } from "vitest";

beforeEach(() => {
  localStorage.clear();
  vi.resetModules();
});
afterEach(() => localStorage.clear());

/** As a tab that was opened now knows it. */
async function tab() {
  vi.resetModules();
  const session = await import("@/session/token");
  const { renderHook } = await import("@testing-library/react");
  return { ...session, seen: () => renderHook(() => session.useSession()).result.current };
}

/** What browsers tell the other tabs. */
function heard(newValue: string | null) {
  window.dispatchEvent(new StorageEvent("storage", { key: "crucible.token", newValue }));
}

it("a token that was refused is forgotten, and every tab knows why, a reloaded one too", async () => {
  const first = await tab();
  first.signIn("cru_1");
  const second = await tab();
  expect(second.seen()).toEqual({ token: "cru_1", isRefused: false });
  first.signOut(true);
  heard(null);
  expect(second.seen()).toEqual({ token: null, isRefused: true });
  expect((await tab()).seen()).toEqual({ token: null, isRefused: true });
});

it("who signs in again, or signed out, is told of no refusal", async () => {
  const session = await tab();
  session.signOut(true);
  session.signIn("cru_2");
  expect((await tab()).seen()).toEqual({ token: "cru_2", isRefused: false });
  session.signOut();
  expect((await tab()).seen()).toEqual({ token: null, isRefused: false });
});
