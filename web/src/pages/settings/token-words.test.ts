import { expect, it } from "vitest";
import { createCommand, expiresAt, tokenState } from "@/pages/settings/token-words";

const NOW = new Date("2026-01-01T00:00:00Z");

it("a token is revoked before it is expired", () => {
  expect(tokenState({ revoked_at: null, expires_at: null }, NOW)).toBe("valid");
  expect(tokenState({ revoked_at: null, expires_at: "2026-01-01T00:00:00Z" }, NOW)).toBe("expired");
  expect(tokenState({ revoked_at: "2025-01-01T00:00:00Z", expires_at: "2025-06-01T00:00:00Z" }, NOW)).toBe("revoked");
});

it("days are counted from now, none is for ever", () => {
  expect(expiresAt({ name: "n", grants: [], days: 30 }, NOW)).toBe("2026-01-31T00:00:00.000Z");
  expect(expiresAt({ name: "n", grants: [], days: null }, NOW)).toBeNull();
});

it("the command says the same, and quotes a name that needs it", () => {
  expect(createCommand({ name: "ci", grants: ["jobs", "read"], days: 30 })).toBe(
    "crucible token create ci --grant jobs --grant read --expires 30",
  );
  expect(createCommand({ name: "it's me", grants: [], days: null })).toBe(`crucible token create 'it'\\''s me'`);
});
