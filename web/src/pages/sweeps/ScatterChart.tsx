/** What trials were worth over one of their parameters. */
import { Group, Select, Text } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { Charted } from "@/charts/Charted";
import { useAddress } from "@/parts/address";
import { axisOf, figure, place } from "@/pages/sweeps/axis";
import type { Trial } from "@/pages/sweeps/parallel";
import classes from "@/pages/sweeps/charts.module.css";
import type { Shape } from "@/api/client";

const SIZE = { height: 300, left: 52, right: 16, top: 12, bottom: 34 };

interface Props {
  trials: Trial[];
  parameters: string[];
  objective: Shape<"Objective">;
}

export function ScatterChart({ trials, parameters, objective }: Props) {
  const [search, change] = useAddress();
  const name = parameters.find((one) => one === search["x"]) ?? parameters[0] ?? "";
  const across = axisOf(
    name,
    trials.map((trial) => trial.params[name]),
  );
  const up = axisOf(
    objective.metric,
    trials.map((trial) => trial.value),
  );
  const { ref, width } = useElementSize();
  const x = (at: number) => SIZE.left + at * Math.max(0, width - SIZE.left - SIZE.right);
  const y = (at: number) => SIZE.height - SIZE.bottom - at * (SIZE.height - SIZE.top - SIZE.bottom);
  const dots = trials.flatMap((trial) => {
    const [px, py] = [place(across, trial.params[name]), place(up, trial.value)];
    return px === null || py === null ? [] : [{ trial, px, py }];
  });
  const best = bestOf(trials, objective.goal);
  const label = `${objective.metric} of ${dots.length} trials over ${name}`;
  const rows = dots.map(({ trial }) => [trial.index, String(trial.params[name]), figure(trial.value)]);
  return (
    <Charted label={label} behind={{ columns: ["trial", name, objective.metric], rows }}>
      <div ref={ref}>
        <svg className={classes["chart"]} width={width} height={SIZE.height} role="img" aria-label={label}>
          {up.ticks.map((tick) => (
            <g key={tick.text}>
              <line className={classes["grid"]} x1={x(0)} x2={x(1)} y1={y(tick.at)} y2={y(tick.at)} />
              <text x={SIZE.left - 6} y={y(tick.at) + 4} textAnchor="end">
                {tick.text}
              </text>
            </g>
          ))}
          {across.ticks.map((tick) => (
            <text key={tick.text} x={x(tick.at)} y={SIZE.height - 18} textAnchor="middle">
              {tick.text}
            </text>
          ))}
          <text className={classes["title"]} x={x(0.5)} y={SIZE.height - 3} textAnchor="middle">
            {name}
            {across.kind === "log" ? " (log)" : ""}
          </text>
          {dots.map(({ trial, px, py }) => (
            <circle
              key={trial.index}
              className={classes["dot"]}
              cx={x(px)}
              cy={y(py)}
              r={trial.index === best ? 7 : 4.5}
              fill={`var(--series-${trial.index === best ? 2 : trial.isWhole ? 1 : 4})`}
            >
              <title>{`trial ${trial.index}: ${name} ${String(trial.params[name])}, ${objective.metric} ${figure(trial.value)}`}</title>
            </circle>
          ))}
        </svg>
      </div>
      <Group justify="space-between" gap="xs">
        <Select
          aria-label="Parameter"
          size="xs"
          w={160}
          data={parameters}
          value={name}
          allowDeselect={false}
          onChange={(value) => change({ x: value ?? undefined })}
        />
        <Text size="xs" className="dim">
          the large dot is the best{up.kind === "log" && `; ${objective.metric} by its logarithm`}
        </Text>
      </Group>
    </Charted>
  );
}

function bestOf(trials: Trial[], goal: "minimize" | "maximize"): number | null {
  const sign = goal === "minimize" ? 1 : -1;
  const whole = trials.filter((trial) => trial.isWhole && trial.value !== null);
  return whole.toSorted((a, b) => sign * ((a.value ?? 0) - (b.value ?? 0)))[0]?.index ?? null;
}
