/** What went wrong, in the server's own words: a stable code, a message for a person, and which field it is about. */
export class ApiError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly status: number,
    readonly details: Record<string, unknown> = {},
    readonly requestId: string | null = null,
  ) {
    super(message);
    this.name = "ApiError";
  }

  get field(): string | null {
    return typeof this.details["field"] === "string" ? this.details["field"] : null;
  }

  /** Whether asking again may help. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export const UNREACHABLE = "unreachable";

export function unreachable(): ApiError {
  return new ApiError(UNREACHABLE, "The server does not answer.", 0);
}

export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new ApiError("page_error", `This page has a bug: ${message}`, -1);
}
