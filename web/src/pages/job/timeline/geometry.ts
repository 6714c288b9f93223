/** Where everything stands in the picture of a job's life: attempts over the targets they ran on, along one axis of
 * time. Pure: seconds and names in, pixels out. */
import type { Shape } from "@/api/client";

export type Attempt = Shape<"AttemptItem">;

export type Phase = "waiting" | "provisioning" | "running";

export interface Bar {
  lane: number;
  /** Of overlapping attempts in one lane, from the top. */
  level: number;
  phase: Phase;
  attempt: number | null;
  from: number;
  to: number;
  x: number;
  width: number;
}

export type Sign = "preempted" | "failed" | "done" | "resumed" | "checkpoint";

export interface Symbol {
  sign: Sign;
  lane: number;
  level: number;
  at: number;
  x: number;
  words: string;
}

export interface Lane {
  name: string;
  y: number;
  height: number;
}

export interface Timeline {
  lanes: Lane[];
  bars: Bar[];
  signs: Symbol[];
  ticks: { x: number; at: number; words: string }[];
  height: number;
}

export interface Life {
  createdAt: string;
  finishedAt: string | null;
  /** Milliseconds since 1970. */
  now: number;
  attempts: Attempt[];
  checkpoints: { step: number; attempt_id: string | null; created_at: string }[];
}

const RIGHT_PX = 16;
export const BAR_PX = 18;
const GAP_PX = 6;
const AXIS_PX = 24;
export const WAITING = "waiting";

/** For the names of the lanes, of a picture so wide. */
export function leftOf(width: number): number {
  return Math.min(270, Math.max(130, Math.round(width * 0.23)));
}

const ms = (at: string) => Date.parse(at);

/** "aws us-east-1, 2 × p4d.24xlarge spot": what an attempt ran on. */
export function targetOf(attempt: Attempt): string {
  const [first] = attempt.machines;
  if (first === undefined) return WAITING;
  const many = attempt.machines.length > 1 ? `${attempt.machines.length} × ` : "";
  return `${placeOf(first)}, ${many}${first.instance_type}${first.is_spot ? " spot" : ""}`;
}

function placeOf({ provider, region }: { provider: string; region: string }): string {
  return provider === region ? provider : `${provider} ${region}`;
}

/** `width`: of the whole picture. */
export function timeline(life: Life, width: number): Timeline {
  const begin = ms(life.createdAt);
  const end = Math.max(begin + 1000, life.finishedAt === null ? life.now : ms(life.finishedAt));
  const left = leftOf(width);
  const scale = (at: number) => left + ((at - begin) / (end - begin)) * Math.max(1, width - left - RIGHT_PX);
  const names = [...new Set([WAITING, ...life.attempts.map(targetOf)])];
  const spans = life.attempts.map((one) => ({
    one,
    lane: names.indexOf(targetOf(one)),
    from: ms(one.created_at),
    to: one.ended_at === null ? end : ms(one.ended_at),
  }));
  const levels = leveled(spans);
  const placed = spans.map((span, at) => ({ ...span, level: levels[at] ?? 0 }));
  const bar = (some: Omit<Bar, "x" | "width">): Bar => ({
    ...some,
    x: scale(some.from),
    width: Math.max(2, scale(some.to) - scale(some.from)),
  });
  const bars = [
    ...waits(begin, end, placed).map(([from, to]) =>
      bar({ lane: 0, level: 0, phase: "waiting", attempt: null, from, to }),
    ),
    ...placed.flatMap(({ one, lane, level, from, to }) => {
      const started = one.started_at === null ? to : ms(one.started_at);
      const parts: Bar[] = [bar({ lane, level, phase: "provisioning", attempt: one.number, from, to: started })];
      if (to > started) parts.push(bar({ lane, level, phase: "running", attempt: one.number, from: started, to }));
      return parts;
    }),
  ];
  const lanes = laid(names, placed);
  const bottom = lanes.at(-1);
  return {
    lanes,
    bars,
    signs: signsOf(life, placed).map((sign) => ({ ...sign, x: scale(sign.at) })),
    ticks: ticksOf(begin, end, width).map((at) => ({ at, x: scale(at), words: sinceWords((at - begin) / 1000) })),
    height: (bottom ? bottom.y + bottom.height : 0) + AXIS_PX,
  };
}

interface Placed {
  one: Attempt;
  lane: number;
  level: number;
  from: number;
  to: number;
}

/** Attempts of one lane that overlap stand below each other. */
function leveled(spans: { lane: number; from: number; to: number }[]): number[] {
  const ends = new Map<number, number[]>();
  return spans.map(({ lane, from, to }) => {
    const taken = ends.get(lane) ?? [];
    ends.set(lane, taken);
    const free = taken.findIndex((until) => until <= from);
    const level = free < 0 ? taken.length : free;
    taken[level] = to;
    return level;
  });
}

/** When no attempt was under way. */
function waits(begin: number, end: number, spans: { from: number; to: number }[]): [number, number][] {
  const found: [number, number][] = [];
  let until = begin;
  for (const span of [...spans].sort((a, b) => a.from - b.from)) {
    if (span.from > until) found.push([until, span.from]);
    until = Math.max(until, span.to);
  }
  if (end > until) found.push([until, end]);
  return found;
}

function laid(names: string[], placed: Placed[]): Lane[] {
  let y = 0;
  return names.map((name, lane) => {
    const levels = 1 + Math.max(0, ...placed.filter((one) => one.lane === lane).map((one) => one.level));
    const height = levels * BAR_PX + GAP_PX;
    y += height;
    return { name, y: y - height, height };
  });
}

const ENDS: Record<string, [Sign, string]> = {
  lost: ["preempted", "its machine was lost"],
  failed: ["failed", "it failed"],
  timed_out: ["failed", "it took too long"],
  succeeded: ["done", "it came to its end"],
};

function signsOf(life: Life, placed: Placed[]): Omit<Symbol, "x">[] {
  const signs: Omit<Symbol, "x">[] = [];
  for (const { one, lane, level, to } of placed) {
    const at = { lane, level };
    if (one.resume_step !== null && one.started_at !== null)
      signs.push({ ...at, sign: "resumed", at: ms(one.started_at), words: `goes on from step ${one.resume_step}` });
    const ended = ENDS[one.outcome ?? ""];
    if (ended) signs.push({ ...at, sign: ended[0], at: to, words: one.reason ?? ended[1] });
  }
  for (const saved of life.checkpoints) {
    const of = placed.find(({ one }) => one.id === saved.attempt_id);
    if (of)
      signs.push({
        sign: "checkpoint",
        lane: of.lane,
        level: of.level,
        at: ms(saved.created_at),
        words: `checkpoint at step ${saved.step}`,
      });
  }
  return signs;
}

const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400, 604_800];
const TICK_PX = 90;

function ticksOf(begin: number, end: number, width: number): number[] {
  const most = Math.max(2, (width - leftOf(width)) / TICK_PX);
  const step = (STEPS_S.find((each) => (end - begin) / 1000 / each <= most) ?? 2_592_000) * 1000;
  return Array.from({ length: Math.floor((end - begin) / step) + 1 }, (_, at) => begin + at * step);
}

function sinceWords(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}
