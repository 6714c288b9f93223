import { beforeEach, expect, it } from "vitest";
import { asApiError } from "@/api/errors";
import { comeBack } from "@/session/sign-in";

beforeEach(() =>
  sessionStorage.setItem("crucible.sign-in", JSON.stringify({ verifier: "v", state: "mine", next: "/" })),
);

const told = async (query: Record<string, string>) => {
  const error = await comeBack(new URLSearchParams(query)).catch((problem: unknown) => asApiError(problem));
  return error instanceof Error ? [error.code, error.message] : error;
};

it("who was let in nowhere hears why, in the words of who refused", async () => {
  const why = "ask an admin to admit your domain";
  expect(await told({ state: "mine", error: "forbidden", error_description: why })).toEqual(["forbidden", why]);
});

it("what another tab began, or nobody, is no sign-in here", async () => {
  expect(await told({ state: "theirs", code: "c" })).toEqual([
    "unauthenticated",
    "another tab began this; sign in again",
  ]);
  expect(await told({ state: "mine", code: "c" })).toEqual([
    "unauthenticated",
    "another tab began this; sign in again",
  ]);
});
