/** Lines over time or steps, with zoom by dragging and back by a double click. The library for it is fetched when the
 * first chart is drawn. */
import { lazy, Suspense } from "react";
import { Skeleton } from "@mantine/core";
import { Charted } from "@/charts/Charted";

export interface Line {
  name: string;
  values: (number | null)[];
  /** Of the palette `--series-N`, from 1; by default its place. */
  series?: number;
  /** A step lasts until the next point: prices, counts. */
  isStepped?: boolean;
  /** Drawn lightly, behind what stands for it. */
  isFaint?: boolean;
}
/** Something that happened at one place of the axis. */
export interface Mark {
  x: number;
  label: string;
}
export interface LineChartProps {
  label: string;
  /** Seconds since 1970 where `isTime`, else steps. */
  x: number[];
  isTime?: boolean;
  lines: Line[];
  height?: number;
  write?: (value: number | null | undefined) => string;
  isLogarithmic?: boolean;
  /** Round figures of it are powers of two: bytes. */
  isBinary?: boolean;
  /** From where to where it is drawn; by default from the least to the most. */
  range?: [number, number];
  marks?: Mark[];
}

const Plot = lazy(() => import("@/charts/Plot"));

export function LineChart(props: LineChartProps) {
  const { label, x, isTime, lines, height = 220, write = String } = props;
  const rows = x.map((at, index) => [
    isTime ? new Date(at * 1000).toLocaleString() : String(at),
    ...lines.map((line) => write(line.values[index])),
  ]);
  return (
    <Charted label={label} behind={{ columns: [isTime ? "time" : "step", ...lines.map((line) => line.name)], rows }}>
      <Suspense fallback={<Skeleton height={height} />}>
        <Plot {...props} height={height} />
      </Suspense>
    </Charted>
  );
}
