import { Group, Text } from "@mantine/core";
import { utcTime } from "@/parts/words";
import { BAR_PX, leftOf, type Bar, type Sign, type Symbol, type Timeline } from "@/pages/job/timeline/geometry";
import classes from "@/pages/job/timeline/Timeline.module.css";

const MARKS: Record<Sign, { path: string; words: string }> = {
  checkpoint: { path: "M0 -5 5 0 0 5 -5 0Z", words: "checkpoint" },
  resumed: { path: "M-4 -6 5 0 -4 6Z", words: "goes on" },
  preempted: { path: "M-5 -5 5 5M5 -5 -5 5", words: "machine lost" },
  failed: { path: "M-5 -5 5 5M5 -5 -5 5", words: "failed" },
  done: { path: "M-5 0 -1 4 6 -5", words: "done" },
};

export function Picture({ drawn, width }: { drawn: Timeline; width: number }) {
  const bottom = drawn.height - 24;
  const yOf = ({ lane, level }: { lane: number; level: number }) => (drawn.lanes[lane]?.y ?? 0) + level * BAR_PX + 3;
  return (
    <svg width={width} height={drawn.height} role="img" aria-label="attempts over time; a table of it can be shown">
      {drawn.ticks.map((tick) => (
        <g key={tick.at}>
          <line className={classes["grid"]} x1={tick.x} x2={tick.x} y1={0} y2={bottom} />
          <text className={classes["tick"]} x={tick.x} y={drawn.height - 8} textAnchor="middle">
            {tick.words}
          </text>
        </g>
      ))}
      {drawn.lanes.map((lane) => (
        <g key={lane.name}>
          <line className={classes["grid"]} x1={0} x2={width} y1={lane.y + lane.height} y2={lane.y + lane.height} />
          <text className={classes["lane"]} x={0} y={lane.y + BAR_PX - 2}>
            <title>{lane.name}</title>
            {shortened(lane.name, leftOf(width))}
          </text>
        </g>
      ))}
      {drawn.bars.map((bar, at) => (
        <rect
          key={at}
          className={classes[bar.phase]}
          x={bar.x}
          y={yOf(bar)}
          width={bar.width}
          height={BAR_PX - 4}
          rx={2}
        >
          <title>{barWords(bar)}</title>
        </rect>
      ))}
      {drawn.signs.map((sign, at) => (
        <Mark key={at} sign={sign} y={yOf(sign) + BAR_PX / 2 - 2} />
      ))}
    </svg>
  );
}

function Mark({ sign, y }: { sign: Symbol; y: number }) {
  return (
    <path className={classes[sign.sign]} d={MARKS[sign.sign].path} transform={`translate(${sign.x} ${y})`}>
      <title>{`${sign.words}, ${utcTime(new Date(sign.at))}`}</title>
    </path>
  );
}

const LETTER_PX = 6.7;

function shortened(name: string, room: number): string {
  const fit = Math.floor(room / LETTER_PX);
  return name.length > fit ? `${name.slice(0, fit - 1)}…` : name;
}

function barWords(bar: Bar): string {
  const seconds = Math.round((bar.to - bar.from) / 1000);
  return `${bar.attempt === null ? "" : `attempt ${bar.attempt}: `}${bar.phase} for ${seconds} s`;
}

export function Legend() {
  return (
    <Group gap="md" mb="xs" aria-hidden="true">
      {(["waiting", "provisioning", "running"] as const).map((phase) => (
        <Group key={phase} gap={6}>
          <svg width={14} height={12}>
            <rect className={classes[phase]} width={14} height={12} rx={2} />
          </svg>
          <Text size="xs">{phase}</Text>
        </Group>
      ))}
      {(Object.keys(MARKS) as Sign[]).map((sign) => (
        <Group key={sign} gap={6}>
          <svg width={14} height={14}>
            <path className={classes[sign]} d={MARKS[sign].path} transform="translate(7 7)" />
          </svg>
          <Text size="xs">{MARKS[sign].words}</Text>
        </Group>
      ))}
    </Group>
  );
}
