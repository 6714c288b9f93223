/** A long list of jobs, newest first, of which some pages are there. A page that is asked again takes the place of what
 * stood between its ends: who left it is gone, who joined is there, and nobody is lost between two pages. */
import type { Shape } from "@/api/client";

export type Brief = Shape<"JobBrief">;

export interface Page {
  items: Brief[];
  next_cursor: string | null;
}

/** `after`: the job behind which the page begins; null for the newest. */
export function spliced(list: Brief[], page: Page, after: Brief | null): Brief[] {
  const begin = after === null ? 0 : firstOlder(list, after);
  const last = page.items.at(-1);
  const end = page.next_cursor === null ? list.length : last === undefined ? begin : firstOlder(list, last);
  return [...list.slice(0, begin), ...page.items, ...list.slice(Math.max(begin, end))];
}

/** The place of the first job that is older than this one. */
export function firstOlder(list: Brief[], than: Brief): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const at = list[middle];
    if (at !== undefined && isOlder(at, than)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function isOlder(one: Brief, than: Brief): boolean {
  const [a, b] = [Date.parse(one.created_at), Date.parse(than.created_at)];
  return a === b ? one.id < than.id : a < b;
}

/** Words in the name, the id, the reason or whose it is. */
export function matches(job: Brief, words: string): boolean {
  const wanted = words.trim().toLowerCase();
  if (wanted === "") return true;
  const told = [job.name, job.id, job.user_id, job.team, job.project, job.provider, job.region, job.reason];
  return told.some((one) => one?.toLowerCase().includes(wanted));
}
