/** Which rows are shown of a segment, and of which line each is a part. Without a filter and without wrapping, lines are
 * rows and nothing is kept; else it is worked out a slice at a time. */
import { Ints } from "@/pages/job/log/ints";
import type { Segment } from "@/pages/job/log/segment";

export interface Filter {
  rank: number | null;
  attempt: number | null;
  isErrorsOnly: boolean;
}

export const EVERYTHING: Filter = { rank: null, attempt: null, isErrorsOnly: false };
const LOOKS = 512; // lines between two looks at the clock

export function passes(segment: Segment, at: number, filter: Filter): boolean {
  return (
    (filter.rank === null || segment.rank(at) === filter.rank) &&
    (filter.attempt === null || segment.attempt(at) === filter.attempt) &&
    (!filter.isErrorsOnly || segment.isError(at))
  );
}

export class SegmentRows {
  private seen = 0;
  private readonly picked = new Ints();
  /** Rows up to the end of each picked line. */
  private readonly ends = new Ints();

  /** `columns`: characters of a row, or null for one row a line, however long. */
  constructor(
    readonly segment: Segment,
    private readonly filter: Filter,
    private readonly columns: number | null,
  ) {}

  private get isPlain(): boolean {
    return this.columns === null && isEverything(this.filter);
  }

  get length(): number {
    return this.isPlain ? this.segment.length : this.ends.at(this.ends.length - 1);
  }

  /** Goes on until it is done or `isLate`. Returns whether it is done. */
  advance(isLate: () => boolean): boolean {
    if (this.isPlain) return true;
    this.lookAgain();
    while (this.seen < this.segment.length) {
      const end = Math.min(this.seen + LOOKS, this.segment.length);
      for (; this.seen < end; this.seen += 1) this.take(this.seen);
      if (isLate()) break;
    }
    return this.seen === this.segment.length;
  }

  line(row: number): { index: number; part: number } {
    if (this.isPlain) return { index: row, part: 0 };
    const at = this.ends.above(row);
    return { index: this.picked.at(at), part: row - (at === 0 ? 0 : this.ends.at(at - 1)) };
  }

  /** The first row of a line, or of the next one that is shown. */
  rowOf(index: number): number {
    if (this.isPlain) return index;
    const at = this.picked.above(index - 1);
    return at === 0 ? 0 : this.ends.at(at - 1);
  }

  /** The last line may have grown since: a long one comes in pieces. */
  private lookAgain(): void {
    if (this.seen === 0 || this.seen < this.segment.length) return;
    const last = this.seen - 1;
    if (this.picked.length > 0 && this.picked.at(this.picked.length - 1) === last) {
      this.picked.pop();
      this.ends.pop();
      this.take(last);
    }
  }

  private take(index: number): void {
    if (!passes(this.segment, index, this.filter)) return;
    const rows = this.columns === null ? 1 : Math.max(1, Math.ceil(this.segment.width(index) / this.columns));
    this.ends.push((this.ends.length === 0 ? 0 : this.ends.at(this.ends.length - 1)) + rows);
    this.picked.push(index);
  }
}

export function isEverything(filter: Filter): boolean {
  return filter.rank === null && filter.attempt === null && !filter.isErrorsOnly;
}
