/** Looks through a log a slice at a time, and goes on as it grows: nobody waits for it, whatever its length. */
import { Ints } from "@/pages/job/log/ints";
import { placeOf, seqOf, type LogStore } from "@/pages/job/log/log-store";
import { passes, type Filter } from "@/pages/job/log/rows";

/** What people look for first when something went wrong. */
export const TROUBLE =
  /Traceback \(most recent call last\)|\b\w*(?:Error|Exception)\b|\b(?:ERROR|FATAL|CRITICAL)\b|CUDA error|out of memory|\b(?:NaN|nan)\b|Segmentation fault|core dumped|NCCL.*(?:timeout|failure)/;

const LOOKS = 256;

/** Words as they stand; null for none. */
export function patternOf(words: string, isExact: boolean): RegExp | null {
  if (words === "") return null;
  return new RegExp(words.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), isExact ? "" : "i");
}

export class Search {
  private readonly found = { head: new Ints(), tail: new Ints() };
  private seen = { head: 0, tail: 0 };
  /** Changes when the past is fetched anew. */
  private readonly of;

  constructor(
    private readonly log: LogStore,
    readonly pattern: RegExp,
    private readonly filter: Filter,
  ) {
    this.of = log.head;
  }

  /** Lines that match, so far. */
  get count(): number {
    return this.found.head.length + this.found.tail.length;
  }

  get isOutdated(): boolean {
    return this.of !== this.log.head;
  }

  /** Goes on until it is done or `isLate`. Returns whether it is done. */
  advance(isLate: () => boolean): boolean {
    return this.through("head", isLate) && this.through("tail", isLate);
  }

  /** The line of a match, by its place among them. */
  seq(match: number): number {
    const heads = this.found.head.length;
    return match < heads ? seqOf(false, this.found.head.at(match)) : seqOf(true, this.found.tail.at(match - heads));
  }

  /** The first match after a line, around the end; -1 for none. */
  next(seq: number): number {
    if (this.count === 0) return -1;
    return this.above(seq) % this.count;
  }

  previous(seq: number): number {
    if (this.count === 0) return -1;
    return (this.above(seq - 1) - 1 + this.count) % this.count;
  }

  private above(seq: number): number {
    const { isTail, index } = placeOf(seq);
    return isTail ? this.found.head.length + this.found.tail.above(index) : this.found.head.above(index);
  }

  private through(name: "head" | "tail", isLate: () => boolean): boolean {
    const segment = this.log[name];
    while (this.seen[name] < segment.length) {
      const end = Math.min(this.seen[name] + LOOKS, segment.length);
      for (let at = this.seen[name]; at < end; at += 1)
        if (passes(segment, at, this.filter) && this.pattern.test(segment.shown(at))) this.found[name].push(at);
      this.seen[name] = end;
      if (isLate()) return false;
    }
    return true;
  }
}
