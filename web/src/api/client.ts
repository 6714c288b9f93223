/** The one place that talks HTTP. Shapes come from the server's own description (schema.d.ts: `npm run types`). */
import createClient, { type Middleware } from "openapi-fetch";
import { ApiError, unreachable } from "@/api/errors";
import type { components, paths } from "@/api/schema";
import { server } from "@/place";
import { signOut, token } from "@/session/token";

export type Shape<Name extends keyof components["schemas"]> = components["schemas"][Name];

const signed: Middleware = {
  onRequest({ request }) {
    const known = token();
    if (known !== null && !request.headers.has("authorization"))
      request.headers.set("authorization", `Bearer ${known}`);
  },
  onResponse({ request, response }) {
    const was = request.headers.get("authorization");
    if (response.status === 401 && was !== null && was === `Bearer ${token()}`) signOut(true);
  },
  onError({ error }) {
    return error instanceof DOMException && error.name === "AbortError" ? error : unreachable();
  },
};

export const api = createClient<paths>({ baseUrl: server.replace(/\/$/, ""), fetch: (request) => fetch(request) });
api.use(signed);

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The data of an answer; raises ApiError otherwise. */
export async function told<T>(asked: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await asked;
  if (response.ok) return data as T;
  throw errorOf(error, response);
}

export function errorOf(error: unknown, response: Response): ApiError {
  const body = (error ?? {}) as { error?: string; message?: string; details?: Record<string, unknown> };
  const said = body.message ?? `The server answers ${response.status}.`;
  const requestId = response.headers.get("x-request-id");
  return new ApiError(body.error ?? "unknown", said, response.status, body.details ?? {}, requestId);
}
