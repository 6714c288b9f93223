import { describe, expect, it } from "vitest";
import type { Shape } from "@/api/client";
import { leftOf, targetOf, timeline, WAITING, type Life } from "@/pages/job/timeline/geometry";

const T0 = Date.parse("2026-11-18T07:00:00Z");
const at = (seconds: number) => new Date(T0 + seconds * 1000).toISOString();
const LEFT_PX = leftOf(1300);
const WIDTH = LEFT_PX + 1000 + 16;

function attempt(number: number, created: number, started: number | null, ended: number | null, more = {}) {
  const machine = {
    machine_id: `i-${number}`,
    provider: "aws",
    region: "us-east-1",
    zone: "",
    instance_type: "p4d",
    is_spot: true,
  };
  return {
    id: `a${number}`,
    task_id: "t",
    number,
    phase: "ended",
    outcome: "succeeded",
    reason: null,
    resume_step: null,
    created_at: at(created),
    started_at: started === null ? null : at(started),
    ended_at: ended === null ? null : at(ended),
    machines: [machine],
    ranks: [],
    ...more,
  } as Shape<"AttemptItem">;
}

function life(attempts: Shape<"AttemptItem">[], more: Partial<Life> = {}): Life {
  return { createdAt: at(0), finishedAt: at(100), now: T0, attempts, checkpoints: [], ...more };
}

describe("a life in a picture", () => {
  it("waits, is provisioned and runs, in pixels of its time", () => {
    const { bars } = timeline(life([attempt(0, 10, 30, 100)]), WIDTH);
    expect(bars.map((bar) => [bar.phase, bar.x, bar.width])).toEqual([
      ["waiting", LEFT_PX, 100],
      ["provisioning", LEFT_PX + 100, 200],
      ["running", LEFT_PX + 300, 700],
    ]);
  });

  it("another target is another lane, and what was lost and went on is marked", () => {
    const lost = attempt(0, 0, 10, 50, { outcome: "lost", reason: "taken back" });
    const next = attempt(1, 60, 70, 100, { resume_step: 40 });
    next.machines = [{ ...(next.machines[0] as Shape<"AttemptMachine">), region: "us-west-2" }];
    const saved = [{ step: 40, attempt_id: "a0", created_at: at(45) }];
    const { lanes, signs, bars } = timeline(life([lost, next], { checkpoints: saved }), WIDTH);
    expect(lanes.map((lane) => lane.name)).toEqual([WAITING, "aws us-east-1, p4d spot", "aws us-west-2, p4d spot"]);
    expect(signs.map((sign) => [sign.sign, sign.lane, Math.round(sign.x - LEFT_PX)])).toEqual([
      ["preempted", 1, 500],
      ["resumed", 2, 700],
      ["done", 2, 1000],
      ["checkpoint", 1, 450],
    ]);
    expect(bars.filter((bar) => bar.phase === "waiting").map((bar) => [bar.x - LEFT_PX, bar.width])).toEqual([
      [500, 100],
    ]);
  });

  it("attempts that overlap on one target stand below each other", () => {
    const { bars, lanes } = timeline(
      life([attempt(0, 0, 0, 50), attempt(1, 20, 20, 60), attempt(2, 50, 50, 80)]),
      WIDTH,
    );
    const running = bars.filter((bar) => bar.phase === "running");
    expect(running.map((bar) => bar.level)).toEqual([0, 1, 0]);
    expect(lanes[1]?.height).toBeGreaterThan(lanes[0]?.height ?? 0);
  });

  it("what runs reaches up to now, and a job of a moment still has a width", () => {
    const running = timeline(life([attempt(0, 0, 10, null)], { finishedAt: null, now: T0 + 200_000 }), WIDTH);
    expect(running.bars.at(-1)).toMatchObject({ phase: "running", to: T0 + 200_000 });
    expect(timeline(life([], { finishedAt: at(0) }), WIDTH).bars).toHaveLength(1);
  });

  it("says of machines how many, where and what", () => {
    const two = attempt(0, 0, 0, 1);
    two.machines = [...two.machines, ...two.machines];
    expect(targetOf(two)).toBe("aws us-east-1, 2 × p4d spot");
    expect(targetOf({ ...two, machines: [] })).toBe(WAITING);
  });

  it("its axis begins with nothing and is not crowded", () => {
    const { ticks } = timeline(life([], { finishedAt: at(86_400) }), WIDTH);
    expect(ticks[0]?.words).toBe("0 s");
    expect(ticks.length).toBeLessThan(14);
  });
});
