import { Button, useComputedColorScheme } from "@mantine/core";
import { LogRow } from "@/pages/job/log/LogRow";
import type { LogView } from "@/pages/job/log/log-view";
import type { Place } from "@/pages/job/log/scroller";
import { heightOf, windowOf } from "@/pages/job/log/window";
import classes from "@/pages/job/log/Log.module.css";

interface Props {
  view: LogView;
  /** Of the element that scrolls. */
  onBox: (box: HTMLElement | null) => (() => void) | undefined;
  onEnd: () => void;
  place: Place;
  columns: number | null;
  hasTimes: boolean;
  /** In place of lines, while there are none. */
  note: string | null;
}

export function LogRows({ view, onBox, onEnd, place, columns, hasTimes, note }: Props) {
  const scheme = useComputedColorScheme();
  const { first, end, top } = windowOf(view.length, place.top, place.height);
  const shown = Array.from({ length: Math.max(0, end - first) }, (_, at) => view.row(first + at));
  return (
    <div className={classes["frame"]}>
      <div
        ref={onBox}
        className={classes["view"]}
        tabIndex={0}
        role="region"
        aria-label="log"
        data-lines={view.log.length}
        data-rows={view.length}
      >
        <div style={{ height: heightOf(view.length) }} />
        <div className={classes["rows"]} style={{ top }}>
          {shown.map(({ seq, part, line }) => (
            <LogRow
              key={`${seq}.${part}`}
              {...line}
              part={part}
              columns={columns}
              hasTimes={hasTimes}
              hasRanks={view.log.ranks.size > 1}
              isCurrent={seq === view.current}
              pattern={view.search?.pattern ?? null}
              scheme={scheme}
            />
          ))}
        </div>
      </div>
      {note && <p className={classes["note"]}>{note}</p>}
      {!place.isFollowing && (
        <Button className={classes["end"]} size="xs" onClick={onEnd}>
          ↓ Jump to the end
        </Button>
      )}
    </div>
  );
}
