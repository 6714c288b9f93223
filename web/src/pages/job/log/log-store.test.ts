import { beforeEach, describe, expect, it, vi } from "vitest";
import type { LogLine } from "@/api/job-stream";
import { LogStore } from "@/pages/job/log/log-store";
import { LogView, type Wanted } from "@/pages/job/log/log-view";
import { EVERYTHING } from "@/pages/job/log/rows";
import { CHUNK_LINES } from "@/pages/job/log/segment";
import { patternOf, TROUBLE } from "@/pages/job/log/search";

function line(n: number, more: Partial<LogLine> = {}): LogLine {
  return { attempt: 0, rank: 0, n, t: 1000 + n, s: "out", x: `line ${n}`, ...more };
}

function lines(from: number, to: number, more: Partial<LogLine> = {}): LogLine[] {
  return Array.from({ length: to - from }, (_, at) => line(from + at, more));
}

let frames: FrameRequestCallback[] = [];

function settle() {
  for (let turn = 0; turn < 10_000 && frames.length > 0; turn += 1) {
    const due = frames;
    frames = [];
    for (const frame of due) frame(0);
  }
}

beforeEach(() => {
  frames = [];
  vi.stubGlobal("requestAnimationFrame", (frame: FrameRequestCallback) => frames.push(frame));
});

function viewed(log: LogStore): LogView {
  const view = new LogView(log);
  view.subscribe(() => undefined);
  return view;
}

function texts(view: LogView): string[] {
  return Array.from({ length: view.length }, (_, row) => view.row(row).line.text);
}

describe("a log", () => {
  it("gives back every line, across chunks", () => {
    const log = new LogStore();
    log.append(lines(0, 3 * CHUNK_LINES + 7));
    for (const at of [0, 1, CHUNK_LINES - 1, CHUNK_LINES, 2 * CHUNK_LINES, 3 * CHUNK_LINES + 6])
      expect(log.tail.line(at)).toEqual({ attempt: 0, rank: 0, at: 1000 + at, isError: false, text: `line ${at}` });
    expect(() => log.tail.line(3 * CHUNK_LINES + 7)).toThrow(RangeError);
  });

  it("puts pieces of one line together, unless another rank speaks in between", () => {
    const log = new LogStore();
    log.append([line(0, { x: "a", p: true }), line(1, { x: "b", p: true }), line(2, { x: "c" }), line(3, { x: "d" })]);
    log.append([line(4, { x: "e", p: true }), line(0, { x: "f", rank: 1 }), line(5, { x: "g" })]);
    expect(texts(viewed(log))).toEqual(["abc", "d", "e", "f", "g"]);
  });

  it("tells who listens once a frame, however much came", () => {
    const log = new LogStore();
    const heard = vi.fn();
    log.subscribe(heard);
    for (let n = 0; n < 50; n += 1) log.append([line(n)]);
    expect(heard).not.toHaveBeenCalled();
    settle();
    expect(heard).toHaveBeenCalledTimes(1);
  });

  it("the past comes before what came live, and lines keep their numbers", () => {
    const log = new LogStore();
    log.append(lines(5, 8));
    const view = viewed(log);
    const seq = view.row(1).seq;
    log.setPast("loading");
    log.appendPast(lines(0, 5));
    settle();
    expect(texts(view)).toEqual(lines(0, 8).map((one) => one.x));
    expect(log.line(seq).text).toBe("line 6");
    expect(view.rowOf(seq)).toBe(6);
    expect(log.isJoint(line(5)) && !log.isJoint(line(5, { rank: 1 }))).toBe(true);
  });

  it("shows one rank, one attempt, or what went to stderr", () => {
    const log = new LogStore();
    log.append([line(0), line(0, { rank: 1, x: "other" }), line(1, { s: "err", x: "bad" }), line(0, { attempt: 1 })]);
    const view = viewed(log);
    const shown = (filter: object) => {
      view.show({ ...EVERYTHING, ...filter }, null);
      settle();
      return texts(view);
    };
    expect(shown({ rank: 1 })).toEqual(["other"]);
    expect(shown({ isErrorsOnly: true })).toEqual(["bad"]);
    expect(shown({ attempt: 0, rank: 0 })).toEqual(["line 0", "bad"]);
    log.append([line(1, { attempt: 1, x: "later" })]);
    settle();
    expect(shown({ attempt: 1 })).toEqual(["line 0", "later"]);
  });

  it("wraps long lines into rows, and follows the last one as it grows", () => {
    const log = new LogStore();
    log.append([line(0, { x: "x".repeat(25) }), line(1, { x: "" }), line(2, { x: "y".repeat(10), p: true })]);
    const view = viewed(log);
    view.show(EVERYTHING, 10);
    settle();
    expect(Array.from({ length: view.length }, (_, row) => view.row(row).part)).toEqual([0, 1, 2, 0, 0]);
    log.append([line(3, { x: "y".repeat(5) })]);
    settle();
    expect(view.length).toBe(6);
    expect(view.row(5)).toMatchObject({ part: 1, line: { text: "y".repeat(15) } });
  });
});

function looked(words: string, isExact = true): Wanted {
  return { pattern: patternOf(words, isExact) ?? /$^/, from: 0 };
}

describe("looking for something", () => {
  it("the first match is gone to by itself, from where one looks; then the next, round the end", () => {
    const log = new LogStore();
    log.append(lines(0, 30));
    const view = viewed(log);
    view.lookFor({ ...looked("line 1"), from: 5 });
    settle();
    expect([view.takeGoal(), view.number, view.takeGoal()]).toEqual([10, 2, null]);
    view.step(-1);
    expect([view.takeGoal(), view.number]).toEqual([1, 1]);
    view.step(-1);
    expect([view.takeGoal(), view.number]).toEqual([19, 11]);
    view.step(1);
    expect(view.takeGoal()).toBe(1);
  });

  it("the first of the whole log is gone to when all of it is there", () => {
    const log = new LogStore();
    log.append([line(9, { x: "an Error" })]);
    log.setPast("missing");
    const view = viewed(log);
    view.lookFor({ pattern: TROUBLE, from: "beginning" });
    settle();
    expect(view.takeGoal()).toBeNull();
    log.setPast("loading");
    log.appendPast([line(0), line(1, { x: "Traceback (most recent call last):" })]);
    log.setPast("whole");
    settle();
    expect([view.takeGoal(), view.search?.count]).toEqual([1, 2]);
  });

  it("counts lines, goes on as they come, and round the end", () => {
    const log = new LogStore();
    log.append(lines(0, 30));
    const view = viewed(log);
    view.lookFor(looked("LINE 2", false));
    settle();
    const search = view.search;
    expect(search?.count).toBe(11);
    log.append(lines(200, 202));
    settle();
    expect(search?.count).toBe(13);
    const seq = (row: number) => view.row(row).seq;
    expect(search?.next(seq(2))).toBe(1);
    expect(search?.next(seq(31))).toBe(0);
    expect(search?.previous(seq(2))).toBe(12);
    expect(view.rowOf(search?.seq(1) ?? -1)).toBe(20);
  });

  it("sees text and not colours, and only lines that are shown", () => {
    const log = new LogStore();
    log.append([line(0, { x: "lo\x1b[1mss" }), line(0, { x: "loss", rank: 1 })]);
    const view = viewed(log);
    view.lookFor(looked("loss"));
    settle();
    expect(view.search?.count).toBe(2);
    view.show({ ...EVERYTHING, rank: 0 }, null);
    settle();
    expect(view.search?.count).toBe(1);
  });

  it("takes words as they stand", () => {
    expect(patternOf("a.b(", true)?.test("a.b(")).toBe(true);
    expect(patternOf("a.b", true)?.test("axb")).toBe(false);
    expect(patternOf("", true)).toBeNull();
  });

  it("a long log is looked through in slices, each of which ends in time", () => {
    let now = 0;
    vi.spyOn(performance, "now").mockImplementation(() => (now += 1));
    const log = new LogStore();
    log.append(lines(0, 100_000));
    const view = viewed(log);
    view.lookFor(looked("line 9999"));
    let slices = 0;
    for (; frames.length > 0; slices += 1) {
      const due = frames;
      frames = [];
      const begun = now;
      for (const frame of due) frame(0);
      expect(now - begun).toBeLessThan(20);
    }
    expect(view.search?.count).toBe(11);
    expect(slices).toBeGreaterThan(20);
  });

  it.each([
    "Traceback (most recent call last):",
    "RuntimeError: CUDA out of memory",
    "[ERROR] no",
    "loss is nan",
    "Segmentation fault (core dumped)",
  ])("trouble: %s", (text) => expect(TROUBLE.test(text)).toBe(true));

  it.each(["step 3 loss 0.1", "finance 12", "no errors", "Mirror"])("no trouble: %s", (text) =>
    expect(TROUBLE.test(text)).toBe(false),
  );
});
