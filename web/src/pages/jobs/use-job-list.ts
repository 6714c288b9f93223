import { useEffect, useMemo, useSyncExternalStore } from "react";
import { SOON_MS } from "@/api/queries";
import type { Filters } from "@/pages/jobs/filters";
import { JobList } from "@/pages/jobs/job-list";

/** One list for each choice of filters; asked again while the page is looked at. */
export function useJobList({ status, team, project, user }: Filters) {
  const list = useMemo(() => new JobList({ status, team, project, user }), [status, team, project, user]);
  useEffect(() => {
    list.open();
    return () => list.close();
  }, [list]);
  return { list, listed: useSyncExternalStore(list.subscribe, list.snapshot) };
}

/** `first`: of the rows in view. */
export function useRefreshed(list: JobList, first: number): void {
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) void list.refresh(first);
    }, SOON_MS);
    return () => clearInterval(timer);
  }, [list, first]);
}
