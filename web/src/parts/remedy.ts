/** What to do about an error, where its message does not say so itself: the page's part of `crucible`'s own advice. */
import type { ApiError } from "@/api/errors";

export interface Remedy {
  words: string;
  command?: string;
}

const REMEDIES: Record<string, Remedy> = {
  unreachable: { words: "Is it running? On its computer:", command: "crucible server status" },
  unauthenticated: { words: "Sign in again." },
  forbidden: {
    words: "Ask who manages the team, or an admin. What you are in your teams:",
    command: "crucible team ls",
  },
  not_found: {
    words: "It was removed, or is of a team that you are not in. What there is:",
    command: "crucible ps -a",
  },
  stale_version: { words: "Somebody changed it meanwhile: look at it again, then decide." },
  busy: { words: "Try again in a moment." },
  storage_failed: { words: "Nothing was changed. Free space on the server’s disk." },
  credentials_rejected: { words: "Check the account:", command: "crucible doctor" },
  infeasible_job: { words: "See what would fit:", command: "crucible plan job.yaml" },
  not_available_yet: { words: "Remove that field from the spec." },
  internal: { words: "The server’s log says more. Which file that is:", command: "crucible server status" },
  invariant_broken: { words: "This is a bug in Crucible: please report it with the server’s log." },
  page_error: { words: "Load the page again. If it stays, please report it." },
};

export function remedyOf(error: ApiError): Remedy | null {
  const hint = error.details["hint"];
  if (typeof hint === "string" && hint !== "") return hint.startsWith("crucible ") ? told(hint) : { words: hint };
  if (error.message.includes("crucible ")) return null;
  return REMEDIES[error.code] ?? null;
}

function told(command: string): Remedy {
  return { words: "To mend it:", command };
}
