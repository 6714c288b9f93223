/** A table of any length: only the rows in view are drawn, and readers are told of how many they are a part. */
import { useMediaQuery } from "@mantine/hooks";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useEffectEvent, useMemo, useRef } from "react";
import { Tick } from "@/parts/Tick";
import { useListKeys } from "@/shell/shortcuts";
import type { Brief } from "@/pages/jobs/book";
import { JobRow } from "@/pages/jobs/JobRow";
import classes from "@/pages/jobs/Jobs.module.css";

const ROW_PX = 48;
const CARD_PX = 104;
const NEAR_END = 20; // rows before it at which more is fetched
const COLUMNS = ["Name", "State", "Progress", "Where", "GPUs", "Cost", "$/h", "Age"];
const NUMBERS = new Set(["GPUs", "Cost", "$/h", "Age"]);

interface Props {
  jobs: Brief[];
  /** Of how many these were chosen, so far. */
  loaded: number;
  isWhole: boolean;
  /** Null for who may only look. */
  picked: ReadonlySet<string> | null;
  onPick: (job: Brief) => void;
  onPickAll: () => void;
  /** Where to begin, in pixels. */
  top: number;
  onView: (first: number, top: number) => void;
  onNearEnd: () => void;
}

export function JobTable({ jobs, loaded, isWhole, picked, onPick, onPickAll, top, onView, onNearEnd }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const isNarrow = useMediaQuery("(max-width: 48em)");
  const rowPx = isNarrow ? CARD_PX : ROW_PX;
  // eslint-disable-next-line react-hooks/incompatible-library -- no compiler keeps what it returns
  const rows = useVirtualizer({
    count: jobs.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowPx,
    getItemKey: (index) => jobs[index]?.id ?? index,
    overscan: 4,
    initialOffset: top,
  });
  const ids = useMemo(() => jobs.map((one) => one.id), [jobs]);
  const { chosen, moves } = useListKeys(ids, () => Math.ceil((rows.scrollOffset ?? 0) / rowPx));
  const drawn = rows.getVirtualItems();
  const [first, last] = [drawn[0]?.index ?? 0, drawn.at(-1)?.index ?? 0];

  useEffect(() => rows.measure(), [rows, rowPx]);
  const toChosen = useEffectEvent(() => {
    rows.scrollToIndex(chosen);
    const row = () => box.current?.querySelector<HTMLElement>("[data-chosen] a");
    // One that was far away is drawn when the list has come to it.
    return requestAnimationFrame(() => requestAnimationFrame(() => row()?.focus({ preventScroll: true })));
  });
  useEffect(() => {
    if (moves === 0) return;
    const frame = toChosen();
    return () => cancelAnimationFrame(frame);
  }, [moves]);
  const view = useEffectEvent(() => onView(first, rows.scrollOffset ?? 0));
  useEffect(() => view(), [first]);
  useEffect(() => {
    if (last >= jobs.length - NEAR_END) onNearEnd();
  }, [last, jobs.length, loaded, onNearEnd]);

  const isAll = picked !== null && jobs.length > 0 && jobs.every((one) => picked.has(one.id));
  return (
    <div ref={box} className={classes["box"]} tabIndex={0} role="region" aria-label="jobs">
      <div role="table" aria-label="jobs" aria-rowcount={isWhole ? jobs.length + 1 : -1}>
        <div role="rowgroup">
          <div className={classes["head"]} role="row" aria-rowindex={1}>
            <div role="columnheader">
              {picked && (
                <Tick
                  label="select all that are listed"
                  isOn={isAll}
                  isMixed={!isAll && picked.size > 0}
                  onChange={onPickAll}
                />
              )}
            </div>
            {COLUMNS.map((name) => (
              <div key={name} role="columnheader" className={NUMBERS.has(name) ? "number" : undefined}>
                {name}
              </div>
            ))}
          </div>
        </div>
        <div role="rowgroup" style={{ height: rows.getTotalSize(), position: "relative" }}>
          <div role="presentation" style={{ transform: `translateY(${drawn[0]?.start ?? 0}px)` }}>
            {drawn.map(({ index, key }) => {
              const job = jobs[index];
              return (
                job && (
                  <JobRow
                    key={key}
                    job={job}
                    number={index + 2}
                    isChosen={index === chosen}
                    isPicked={picked && picked.has(job.id)}
                    onPick={onPick}
                  />
                )
              );
            })}
          </div>
        </div>
      </div>
    </div>
  );
}
