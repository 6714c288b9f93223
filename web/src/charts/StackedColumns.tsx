/** Columns over time, each made of the parts of one sum. */
import { Charted } from "@/charts/Charted";
import { Legend } from "@/charts/Legend";
import { ticksUpTo } from "@/charts/ticks";
import classes from "@/charts/StackedColumns.module.css";

export interface Column {
  name: string;
  parts: number[];
}

interface Props {
  label: string;
  /** What the parts are, in their order. */
  names: string[];
  columns: Column[];
  write: (value: number) => string;
  /** A column's name as it stands below it. */
  shorten: (name: string) => string;
}

const MOST_LABELS = 8;

export function StackedColumns({ label, names, columns, write, shorten }: Props) {
  const sums = columns.map(({ parts }) => parts.reduce((sum, part) => sum + part, 0));
  const ticks = ticksUpTo(Math.max(...sums, 0));
  const top = ticks[ticks.length - 1] ?? 1;
  const rows = columns.map((column, at) => [column.name, ...column.parts.map(write), write(sums[at] ?? 0)]);
  return (
    <Charted label={label} behind={{ columns: ["time", ...names, "in all"], rows }}>
      <Legend parts={names} />
      <div className={classes.chart} role="img" aria-label={`${label}; a table of it can be shown`}>
        <div className={classes.side}>
          {ticks.map((tick) => (
            <span key={tick} style={{ bottom: `${(tick / top) * 100}%` }}>
              {write(tick)}
            </span>
          ))}
        </div>
        <div
          className={classes.plot}
          data-few={columns.length <= 31 || undefined}
          data-dense={columns.length > 120 || undefined}
        >
          {ticks.map((tick) => (
            <i key={tick} className={classes.line} style={{ bottom: `${(tick / top) * 100}%` }} />
          ))}
          {columns.map((column, at) => (
            <div key={column.name} className={classes.column} title={words(column, names, write, sums[at] ?? 0)}>
              {column.parts.map((part, series) => (
                <span
                  key={series}
                  style={{ height: `${(part / top) * 100}%`, background: `var(--series-${(series % 6) + 1})` }}
                />
              ))}
            </div>
          ))}
        </div>
        <Below columns={columns} shorten={shorten} />
      </div>
    </Charted>
  );
}

function Below({ columns, shorten }: Pick<Props, "columns" | "shorten">) {
  const every = Math.max(1, Math.ceil(columns.length / MOST_LABELS));
  return (
    <div className={classes.below}>
      {columns.map(
        ({ name }, at) =>
          at % every === 0 && (
            <span key={name} style={{ left: `${((at + 0.5) / columns.length) * 100}%` }}>
              {shorten(name)}
            </span>
          ),
      )}
    </div>
  );
}

function words(column: Column, names: string[], write: Props["write"], sum: number): string {
  const parts = column.parts.flatMap((part, at) => (part === 0 ? [] : [`${names[at] ?? ""}: ${write(part)}`]));
  return [`${column.name}: ${write(sum)}`, ...(parts.length > 1 ? parts : [])].join("\n");
}
