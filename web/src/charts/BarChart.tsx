/** Bars that lie, so that their names can be read; several parts of one bar stand for parts of one sum. */
import { Charted } from "@/charts/Charted";
import { Legend } from "@/charts/Legend";
import classes from "@/charts/BarChart.module.css";

export interface Bar {
  name: string;
  parts: number[];
  /** Shown after the bar; by default the sum. */
  note?: string;
  isChosen?: boolean;
}

interface Props {
  label: string;
  /** What the parts are, in their order. */
  parts: string[];
  bars: Bar[];
  write: (value: number) => string;
}

export function BarChart({ label, parts, bars, write }: Props) {
  const sums = bars.map((bar) => bar.parts.reduce((sum, part) => sum + part, 0));
  const longest = Math.max(...sums, Number.MIN_VALUE);
  const rows = bars.map((bar, at) => [bar.name, ...bar.parts.map(write), bar.note ?? write(sums[at] ?? 0)]);
  return (
    <Charted label={label} behind={{ columns: ["name", ...parts, "in all"], rows }}>
      {parts.length > 1 && <Legend parts={parts} />}
      <div className={classes.bars} role="img" aria-label={`${label}; a table of it can be shown`}>
        {bars.map((bar, at) => (
          <div key={bar.name} className={classes.row} data-chosen={bar.isChosen || undefined}>
            <span className={classes.name} title={bar.name}>
              {bar.name}
            </span>
            <span className={classes.track}>
              {bar.parts.map((part, index) => (
                <span
                  key={index}
                  className={classes.part}
                  style={{ width: `${(part / longest) * 100}%`, background: `var(--series-${(index % 6) + 1})` }}
                  title={`${parts[index] ?? ""}: ${write(part)}`}
                />
              ))}
            </span>
            <span className={classes.value}>{bar.note ?? write(sums[at] ?? 0)}</span>
          </div>
        ))}
      </div>
    </Charted>
  );
}
