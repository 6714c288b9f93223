import { memo } from "react";
import { utcTime } from "@/parts/words";
import { ORDINARY, spans } from "@/pages/job/log/ansi";
import { styleOf, type Scheme } from "@/pages/job/log/colours";
import { cut, marked } from "@/pages/job/log/marks";
import classes from "@/pages/job/log/Log.module.css";

export interface LogRowProps {
  text: string;
  /** Of a wrapped line: which of its rows, of how many characters each. */
  part: number;
  columns: number | null;
  at: number;
  rank: number;
  attempt: number;
  isError: boolean;
  isCurrent: boolean;
  hasTimes: boolean;
  hasRanks: boolean;
  pattern: RegExp | null;
  scheme: Scheme;
}

const SERIES = 6;

export const LogRow = memo(function LogRow(props: LogRowProps) {
  const { part, columns, rank } = props;
  const isFirst = part === 0;
  return (
    <div className={classes["row"]} data-error={props.isError || undefined} data-current={props.isCurrent || undefined}>
      {props.hasTimes && (
        <span className={classes["gutter"]} title={isFirst ? utcTime(new Date(props.at)) : undefined}>
          {isFirst ? timeOf(props.at) : ""}
        </span>
      )}
      {props.hasRanks && (
        <span
          className={classes["rank"]}
          style={{ color: `var(--series-${(rank % SERIES) + 1})` }}
          title={`rank ${rank}, attempt ${props.attempt}`}
        >
          {isFirst ? rank : ""}
        </span>
      )}
      <span className={classes["text"]} title={props.isError ? "written to stderr" : undefined}>
        <Text {...props} from={columns === null ? 0 : part * columns} />
      </span>
    </div>
  );
});

function Text({ text, columns, from, pattern, scheme }: LogRowProps & { from: number }) {
  const whole = spans(text);
  const shown = columns === null ? whole : cut(whole, from, from + columns);
  return marked(shown, pattern).map(({ text: words, look, isMarked }, at) => {
    const style = look === ORDINARY ? undefined : styleOf(look, scheme);
    if (isMarked)
      return (
        <mark key={at} style={style}>
          {words}
        </mark>
      );
    return style ? (
      <span key={at} style={style}>
        {words}
      </span>
    ) : (
      words
    );
  });
}

function timeOf(at: number): string {
  const moment = new Date(at);
  const two = (value: number) => String(value).padStart(2, "0");
  const clock = [moment.getHours(), moment.getMinutes(), moment.getSeconds()].map(two).join(":");
  return `${clock}.${String(moment.getMilliseconds()).padStart(3, "0")}`;
}
