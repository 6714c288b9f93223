/** The graph of a workflow: each step a box with its state in a word and a colour, reachable by the keyboard. */
import { useMemo, type KeyboardEvent } from "react";
import { Charted } from "@/charts/Charted";
import { BOX, curve, drawn, type Box } from "@/pages/sweeps/dag";
import { outcome } from "@/pages/sweeps/trials";
import classes from "@/pages/sweeps/charts.module.css";
import { duration, plural, usd } from "@/parts/words";
import type { Step } from "@/pages/sweeps/queries";

const INKS: Record<string, string> = {
  completed: "var(--good)",
  reused: "var(--good)",
  running: "var(--series-1)",
  checkpointing: "var(--series-1)",
  provisioning: "var(--series-4)",
  scheduled: "var(--series-4)",
  failed: "var(--bad)",
};

interface Props {
  steps: Step[];
  chosen: string | undefined;
  onChoose: (name: string) => void;
}

export function StepGraph({ steps, chosen, onChoose }: Props) {
  const drawing = useMemo(() => drawn(steps), [steps]);
  const byName = new Map(steps.map((step) => [step.name, step]));
  const rows = steps.map((step) => [
    step.name,
    outcome(step),
    step.needs.join(", ") || "–",
    tookOf(step),
    usd(step.cost_usd),
    step.provider ? `${step.provider} ${step.region ?? ""}` : "–",
    step.reason ?? "",
  ]);
  const label = `${plural(steps.length, "step")}, each after those that it needs`;
  return (
    <Charted label={label} behind={{ columns: ["step", "state", "needs", "took", "cost", "where", "reason"], rows }}>
      <div className={classes["scroll"]} tabIndex={0} role="region" aria-label="graph of the steps">
        <svg width={drawing.width} height={drawing.height} role="group" aria-label={label}>
          <defs>
            <marker id="arrow-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
              <path className={classes["head"]} d="M0,0L8,4L0,8z" />
            </marker>
          </defs>
          {drawing.arrows.map(({ from, to, points }) => (
            <path key={`${from} ${to}`} className={classes["arrow"]} d={curve(points)} markerEnd="url(#arrow-head)" />
          ))}
          {drawing.boxes.map((box) => {
            const step = byName.get(box.name);
            return (
              step && (
                <StepBox key={box.name} box={box} step={step} isChosen={box.name === chosen} onChoose={onChoose} />
              )
            );
          })}
        </svg>
      </div>
    </Charted>
  );
}

const MOST_LETTERS = 19;

interface BoxProps {
  box: Box;
  step: Step;
  isChosen: boolean;
  onChoose: (name: string) => void;
}

function StepBox({ box, step, isChosen, onChoose }: BoxProps) {
  const state = outcome(step);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    onChoose(step.name);
  };
  return (
    <g
      className={classes["step"]}
      role="button"
      tabIndex={0}
      aria-pressed={isChosen}
      aria-description={step.needs.length ? `after ${step.needs.join(", ")}` : undefined}
      transform={`translate(${box.x},${box.y})`}
      onClick={() => onChoose(step.name)}
      onKeyDown={onKeyDown}
    >
      <rect width={BOX.width} height={BOX.height} rx={6} />
      <circle cx={16} cy={20} r={5} fill={INKS[state] ?? "var(--dim)"} />
      <text className={classes["name"]} x={28} y={24}>
        {step.name.length > MOST_LETTERS ? `${step.name.slice(0, MOST_LETTERS - 1)}…` : step.name}
        {step.name.length > MOST_LETTERS && <title>{step.name}</title>}
      </text>
      <text className={classes["state"]} x={28} y={42} fill="var(--dim)">
        {[state, tookOf(step)].filter((word) => word !== "–").join(" · ")}
      </text>
    </g>
  );
}

export function tookOf({ started_at, finished_at }: Pick<Step, "started_at" | "finished_at">): string {
  return started_at && finished_at ? duration((Date.parse(finished_at) - Date.parse(started_at)) / 1000) : "–";
}
