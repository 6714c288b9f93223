/** Ways in: a token that somebody was given; elsewhere (OIDC, with PKCE); or a ticket that `crucible dashboard` made. */
import { api, told } from "@/api/client";
import { ApiError } from "@/api/errors";
import { signIn } from "@/session/token";

const BEGUN = "crucible.sign-in";

interface Begun {
  verifier: string;
  state: string;
  next: string;
}

/** Raises ApiError if the server does not know it; only then is it kept. */
export async function withToken(value: string): Promise<void> {
  await told(api.GET("/v1/me", { headers: { authorization: `Bearer ${value}` } }));
  signIn(value);
}

/** Where to send the browser, which comes back to `returnTo` with a code. */
export async function elsewhere(server: string, returnTo: string, next: string): Promise<string> {
  const begun: Begun = { verifier: random(), state: random(), next };
  sessionStorage.setItem(BEGUN, JSON.stringify(begun));
  const address = new URL("v1/login/oidc", server);
  address.searchParams.set("redirect", returnTo);
  address.searchParams.set("challenge", await challengeOf(begun.verifier));
  address.searchParams.set("state", begun.state);
  return address.href;
}

/** After coming back: trades the code for a token. Returns where the person wanted to go. */
export async function comeBack(query: URLSearchParams): Promise<string> {
  const begun = JSON.parse(sessionStorage.getItem(BEGUN) ?? "null") as Begun | null;
  sessionStorage.removeItem(BEGUN);
  if (begun === null || begun.state !== query.get("state")) throw refused("another tab began this; sign in again");
  const code = query.get("error");
  if (code) throw refused(query.get("error_description") ?? "the identity provider let nobody in", code);
  await withTicket(query.get("code") ?? "", begun.verifier);
  return begun.next;
}

export async function withTicket(code: string, verifier: string): Promise<void> {
  const made = await told(api.POST("/v1/login/token", { body: { code, verifier } }));
  signIn(made.token);
}

function refused(why: string, code = "unauthenticated"): ApiError {
  return new ApiError(code, why, 401);
}

function random(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

export async function challengeOf(verifier: string): Promise<string> {
  if (crypto.subtle === undefined)
    throw refused("this browser signs in elsewhere only from a page that it got by https or from localhost");
  return base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
}
