/** A log as one looks at it: which rows are shown, what was looked for, and the work behind both, done a few
 * milliseconds of each frame. Components hear that something changed and draw what is in view. */
import { placeOf, seqOf, type LogStore } from "@/pages/job/log/log-store";
import { EVERYTHING, SegmentRows, type Filter } from "@/pages/job/log/rows";
import { Search } from "@/pages/job/log/search";
import type { Line } from "@/pages/job/log/segment";

const SLICE_MS = 6;

export interface Row {
  seq: number;
  /** Of a line that is wrapped: its first row is 0. */
  part: number;
  line: Line;
}

export interface Wanted {
  pattern: RegExp;
  /** The first one is gone to: of the whole log, or from this row on. */
  from: "beginning" | number;
}

export class LogView {
  version = 0;
  search: Search | null = null;
  isSearching = false;
  /** The match that was gone to last, as a line. */
  current: number | null = null;
  private from: number | null = null;
  private goal: number | null = null;
  private filter = EVERYTHING;
  private columns: number | null = null;
  private head: SegmentRows;
  private tail: SegmentRows;
  private listeners = new Set<() => void>();
  private frame: number | null = null;
  private leave: (() => void) | null = null;

  constructor(readonly log: LogStore) {
    this.head = new SegmentRows(log.head, this.filter, null);
    this.tail = new SegmentRows(log.tail, this.filter, null);
  }

  get length(): number {
    return this.head.length + this.tail.length;
  }

  /** Rows of what was before the end: they push the others down while they come. */
  get pastRows(): number {
    return this.head.length;
  }

  row(at: number): Row {
    const isTail = at >= this.head.length;
    const { index, part } = isTail ? this.tail.line(at - this.head.length) : this.head.line(at);
    const seq = seqOf(isTail, index);
    return { seq, part, line: this.log.line(seq) };
  }

  rowOf(seq: number): number {
    const { isTail, index } = placeOf(seq);
    return isTail ? this.head.length + this.tail.rowOf(index) : this.head.rowOf(index);
  }

  show(filter: Filter, columns: number | null): void {
    this.filter = filter;
    this.columns = columns;
    this.head = new SegmentRows(this.log.head, filter, columns);
    this.tail = new SegmentRows(this.log.tail, filter, columns);
    if (this.search) this.search = new Search(this.log, this.search.pattern, filter);
    this.work();
  }

  lookFor(wanted: Wanted | null): void {
    this.search = wanted && new Search(this.log, wanted.pattern, this.filter);
    this.current = null;
    const from = wanted?.from;
    this.from = typeof from === "number" && from < this.length ? this.row(from).seq : null;
    this.work();
  }

  /** To the next match, or the one before; nowhere if there is none. */
  step(by: 1 | -1): void {
    const { search } = this;
    if (search === null || search.count === 0) return;
    const at = this.current ?? this.from ?? -1;
    this.goTo(by > 0 ? search.next(at) : search.previous(at));
    this.told();
  }

  /** Which of the matches is the current one, from 1. */
  get number(): number {
    if (this.search === null || this.current === null) return 0;
    return this.search.previous(this.current + 1) + 1;
  }

  /** The row that should come into view, once. */
  takeGoal(): number | null {
    const goal = this.goal === null ? null : this.rowOf(this.goal);
    this.goal = null;
    return goal;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    this.leave ??= this.log.subscribe(this.work);
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size > 0) return;
      this.leave?.();
      this.leave = null;
    };
  };

  snapshot = (): number => this.version;

  private goTo(match: number): void {
    if (this.search === null || match < 0) return;
    this.current = this.goal = this.search.seq(match);
  }

  /** One slice now, the rest in the next frames. */
  private work = (): void => {
    if (this.frame !== null) return;
    if (this.head.segment !== this.log.head) this.head = new SegmentRows(this.log.head, this.filter, this.columns);
    if (this.search?.isOutdated) this.search = new Search(this.log, this.search.pattern, this.filter);
    const until = performance.now() + SLICE_MS;
    const isLate = () => performance.now() > until;
    const isDrawn = this.head.advance(isLate) && this.tail.advance(isLate);
    this.isSearching = this.search !== null && !(isDrawn && this.search.advance(isLate));
    this.goToFirst();
    if (!isDrawn || this.isSearching)
      this.frame = requestAnimationFrame(() => {
        this.frame = null;
        this.work();
      });
    this.told();
  };

  /** The first match of the whole log is known only when all of it is there. */
  private goToFirst(): void {
    const { search, log } = this;
    if (search === null || this.current !== null || search.count === 0) return;
    if (this.from !== null) this.goTo(search.next(this.from - 1));
    else if (log.past !== "missing" && log.past !== "loading") this.goTo(0);
  }

  private told(): void {
    this.version += 1;
    for (const listener of this.listeners) listener();
  }
}
