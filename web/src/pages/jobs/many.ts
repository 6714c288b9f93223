/** The same wish for several jobs: all of them are asked, even if one refuses. */
import { ApiError, asApiError } from "@/api/errors";
import { plural } from "@/parts/words";
import type { Action } from "@/pages/job/actions/actions";

/** Raises ApiError that says how many refused, and why the first one did. */
export async function runMany(action: Action, ids: string[], once: string): Promise<void> {
  const refusals: ApiError[] = [];
  for (const id of ids) {
    try {
      await action.run(id, once);
    } catch (error) {
      refusals.push(asApiError(error));
    }
  }
  const [first] = refusals;
  if (first === undefined) return;
  const words = `${refusals.length} of ${plural(ids.length, "job")} refused: ${first.message}`;
  throw new ApiError(first.code, words, first.status, first.details, first.requestId);
}
