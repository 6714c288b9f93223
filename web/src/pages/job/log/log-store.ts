/** What a task has written, as far as this page has it: the end of it, which grows while one looks (`tail`), and what was
 * before that (`head`), which is fetched when somebody wants it. Both only ever grow at their ends, so a line keeps its
 * number (`seq`) for good. */
import type { LogLine } from "@/api/job-stream";
import { Segment, type Line } from "@/pages/job/log/segment";

const TAIL_FROM = 2 ** 30;

/** Where `head` stands: unknown until somebody has looked at the first line. */
export type Past = "unknown" | "missing" | "loading" | "whole" | "failed";

export class LogStore {
  head = new Segment();
  readonly tail = new Segment();
  past: Past = "unknown";
  error: unknown = null;
  ranks = new Set<number>();
  attempts = new Set<number>();
  /** Of the first line of `tail`: where `head` must end. */
  joint: LogLine | null = null;
  private listeners = new Set<() => void>();
  private isTelling = false;

  get length(): number {
    return this.head.length + this.tail.length;
  }

  append(lines: LogLine[]): void {
    for (const line of lines) {
      this.joint ??= line;
      this.note(line);
      this.tail.append(line);
    }
    this.changed();
  }

  appendPast(lines: LogLine[]): void {
    for (const line of lines) {
      this.note(line);
      this.head.append(line);
    }
    this.changed();
  }

  setPast(past: Past, error: unknown = null): void {
    if (past === "loading") this.head = new Segment();
    this.past = past;
    this.error = error;
    this.changed();
  }

  /** Whether a line from the beginning is the one with which `tail` begins. */
  isJoint(line: LogLine): boolean {
    const at = this.joint;
    return at !== null && at.attempt === line.attempt && at.rank === line.rank && at.n === line.n;
  }

  line(seq: number): Line {
    return seq >= TAIL_FROM ? this.tail.line(seq - TAIL_FROM) : this.head.line(seq);
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  private note(line: LogLine): void {
    this.ranks.add(line.rank);
    this.attempts.add(line.attempt);
  }

  /** However much comes within one frame, who looks is told once. */
  private changed(): void {
    if (this.isTelling) return;
    this.isTelling = true;
    requestAnimationFrame(() => {
      this.isTelling = false;
      for (const listener of this.listeners) listener();
    });
  }
}

export function seqOf(isTail: boolean, index: number): number {
  return isTail ? TAIL_FROM + index : index;
}

export function placeOf(seq: number): { isTail: boolean; index: number } {
  return seq >= TAIL_FROM ? { isTail: true, index: seq - TAIL_FROM } : { isTail: false, index: seq };
}
