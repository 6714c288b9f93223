import { useLocation } from "@tanstack/react-router";
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { SOON_MS } from "@/api/queries";
import type { Filters } from "@/pages/jobs/filters";
import { JobList } from "@/pages/jobs/job-list";

/** Lists as they were left, by visit: the way back leads to where one was. */
const left = new Map<string, JobList>();
const MOST_LEFT = 5;

/** One list for each choice of filters; asked again while the page is looked at. */
export function useJobList({ status, team, project, user }: Filters) {
  const visit = useLocation({ select: ({ state }) => state.__TSR_key ?? "" });
  const [known] = useState(() => left.get(visit));
  const list = useMemo(() => {
    const wanted = { status, team, project, user };
    return known?.isOf(wanted) ? known : new JobList(wanted);
  }, [known, status, team, project, user]);
  useEffect(() => {
    left.delete(visit);
    left.set(visit, list);
    for (const oldest of [...left.keys()].slice(0, -MOST_LEFT)) left.delete(oldest);
  }, [visit, list]);
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
