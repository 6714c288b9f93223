import { Text } from "@mantine/core";
import type { Shape } from "@/api/client";
import { LineChart, type Line, type Mark } from "@/charts/LineChart";
import { Panel } from "@/parts/Panel";
import { Told } from "@/parts/Told";
import { count, significant } from "@/parts/words";
import { aligned, byAttempt, invalidOf, placeOf, smoothed, valueOf, type Drawn } from "@/pages/job/metrics/series";

export interface Drawing {
  isTime: boolean;
  weight: number;
  isLogarithmic: boolean;
}

interface Props {
  series: Shape<"Series">;
  /** Which of those in the answer. */
  place: number;
  attempts: Shape<"AttemptItem">[];
  drawing: Drawing;
}

export function MetricChart({ series, place, attempts, drawing }: Props) {
  const { x, lines } = linesOf(series, attempts, drawing);
  const invalid = invalidOf(series.points);
  return (
    <Panel
      title={series.name}
      aside={
        invalid > 0 && (
          <Text size="xs" c="var(--bad)">
            <Told at={`series.${place}.points.*.invalid`} value={invalid} write={count} />{" "}
            {invalid === 1 ? "value" : "values"} not a number
          </Text>
        )
      }
    >
      {x.length === 0 ? (
        <Text size="sm" className="dim">
          It tells no steps: choose time.
        </Text>
      ) : (
        <LineChart
          label={series.name}
          x={x}
          isTime={drawing.isTime}
          lines={lines}
          marks={marksOf(attempts, drawing.isTime)}
          write={significant}
          isLogarithmic={drawing.isLogarithmic}
        />
      )}
    </Panel>
  );
}

function linesOf(series: Shape<"Series">, attempts: Shape<"AttemptItem">[], drawing: Drawing) {
  const stretches = byAttempt(series.points, attempts);
  const raw = stretches.map(({ attempt, points }): Drawn => {
    const known = points.filter((point) => placeOf(point, drawing.isTime) !== null);
    return {
      name: stretches.length > 1 ? `${series.name}, attempt ${attempt}` : series.name,
      x: known.map((point) => placeOf(point, drawing.isTime) ?? 0),
      values: known.map(valueOf),
    };
  });
  const all = drawing.weight > 0 ? [...raw.map((line) => smooth(line, drawing.weight)), ...raw] : raw;
  const { x, values } = aligned(all);
  const lines = all.map((line, at): Line => ({
    name: line.name,
    values: values[at] ?? [],
    series: ((at % raw.length) % 6) + 1,
    isFaint: at >= raw.length,
  }));
  return { x, lines };
}

function smooth(line: Drawn, weight: number): Drawn {
  return { ...line, name: `${line.name}, smoothed`, values: smoothed(line.values, weight) };
}

/** Where it went on after it was lost. */
function marksOf(attempts: Shape<"AttemptItem">[], isTime: boolean): Mark[] {
  return attempts
    .filter((one) => one.resume_step !== null && one.started_at !== null)
    .map((one) => ({
      x: isTime ? Date.parse(one.started_at ?? "") / 1000 : (one.resume_step ?? 0),
      label: `attempt ${one.number} goes on`,
    }));
}
