/** Every trial as a line across its parameters to what it was worth. The best is the thick one; an axis can be
 * narrowed to a half, so that one sees where the good ones pass. */
import { Chip, Group, Text } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useState } from "react";
import { Charted } from "@/charts/Charted";
import { figure } from "@/pages/sweeps/axis";
import { parallel, type Line, type Trial } from "@/pages/sweeps/parallel";
import classes from "@/pages/sweeps/charts.module.css";
import type { Shape } from "@/api/client";

const SIZE = { height: 300, left: 16, right: 52, top: 40, bottom: 14 };
// An axis needs so much room, or its name and figures lie on the next one's.
const AXIS_PX = 104;

interface Props {
  trials: Trial[];
  parameters: string[];
  objective: Shape<"Objective">;
}

export function ParallelChart({ trials, parameters, objective }: Props) {
  const [isOnlyBest, setIsOnlyBest] = useState(false);
  const { axes, lines, leftOut } = parallel(trials, parameters, objective.metric, objective.goal);
  const { ref, width: room } = useElementSize();
  const width = Math.max(room, axes.length * AXIS_PX);
  const x = (at: number) => SIZE.left + at * (width - SIZE.left - SIZE.right);
  const y = (at: number) => SIZE.height - SIZE.bottom - at * (SIZE.height - SIZE.top - SIZE.bottom);
  const path = (line: Line) => line.points.map(([px, py], at) => `${at === 0 ? "M" : "L"}${x(px)},${y(py)}`).join("");
  const rows = trials.map((trial) => [
    trial.index,
    ...parameters.map((name) => String(trial.params[name] ?? "–")),
    figure(trial.value),
  ]);
  const label = `${lines.length} trials across ${parameters.join(", ")} and ${objective.metric}`;
  return (
    <Charted label={label} behind={{ columns: ["trial", ...parameters, objective.metric], rows }}>
      <div ref={ref} className={classes["scroll"]}>
        <svg className={classes["chart"]} width={width} height={SIZE.height} role="img" aria-label={label}>
          {lines.map((line) => (
            <path
              key={line.index}
              className={classes["line"]}
              d={path(line)}
              stroke={`color-mix(in oklab, var(--series-1) ${Math.round(line.rank * 100)}%, var(--line))`}
              strokeDasharray={line.isWhole ? undefined : "4 3"}
              data-best={line.rank === 1 || undefined}
              data-faded={(isOnlyBest && line.rank < 0.75) || undefined}
            >
              <title>{`trial ${line.index}`}</title>
            </path>
          ))}
          {axes.map((axis, at) => {
            const left = x(axes.length < 2 ? 0.5 : at / (axes.length - 1));
            return (
              <g key={axis.name}>
                <line className={classes["axis"]} x1={left} x2={left} y1={y(0)} y2={y(1)} />
                <text
                  className={classes["title"]}
                  x={at === 0 ? 0 : at === axes.length - 1 ? width : left}
                  y={14}
                  textAnchor={at === 0 ? "start" : at === axes.length - 1 ? "end" : "middle"}
                >
                  {axis.name}
                </text>
                {axis.kind === "log" && (
                  <text x={at === 0 ? 0 : left} y={27} textAnchor={at === 0 ? "start" : "middle"}>
                    log
                  </text>
                )}
                {axis.ticks.map((tick) => (
                  <text key={tick.text} x={left + 5} y={y(tick.at) + 4}>
                    {tick.text}
                  </text>
                ))}
              </g>
            );
          })}
        </svg>
      </div>
      <Group justify="space-between" gap="xs">
        <Chip size="xs" checked={isOnlyBest} onChange={setIsOnlyBest}>
          the best quarter
        </Chip>
        <Text size="xs" className="dim">
          the thick line is the best; dashed ones did not come to their end
          {leftOut > 0 && `; ${leftOut} without a value are left out`}
        </Text>
      </Group>
    </Charted>
  );
}
