import { useEffect, useLayoutEffect, useMemo, useSyncExternalStore } from "react";
import { columnsIn } from "@/pages/job/log/columns";
import { LogView } from "@/pages/job/log/log-view";
import type { LogStore } from "@/pages/job/log/log-store";
import type { Options } from "@/pages/job/log/options";
import { Scroller } from "@/pages/job/log/scroller";
import { patternOf, TROUBLE } from "@/pages/job/log/search";

/** A log with what one wants to see of it, where one looks, and how wide a row is. */
export function useLogView(log: LogStore, options: Options) {
  const { rank, attempt, isErrorsOnly, find, isTrouble } = options;
  const view = useMemo(() => new LogView(log), [log]);
  const scroller = useMemo(() => new Scroller(), []);
  const version = useSyncExternalStore(view.subscribe, view.snapshot);
  const place = useSyncExternalStore(scroller.subscribe, scroller.snapshot);
  const columns = columnsIn(place.width, options, log.ranks.size > 1);

  useEffect(() => view.show({ rank, attempt, isErrorsOnly }, columns), [view, rank, attempt, isErrorsOnly, columns]);
  useEffect(() => {
    const pattern = isTrouble ? TROUBLE : patternOf(find, false);
    view.lookFor(pattern && { pattern, from: isTrouble ? "beginning" : scroller.firstRow() });
  }, [view, scroller, find, isTrouble]);
  useLayoutEffect(() => scroller.settle(view.length, view.pastRows, view.takeGoal()), [view, scroller, version]);
  return { view, scroller, place, columns };
}
