/** Where one looks in a log, and whether its end is followed: until one scrolls up, and again from the end on. */
import { rowAt, scrollTo } from "@/pages/job/log/window";

const AT_END_PX = 4;
const ABOVE = 5; // rows left above the one that is gone to

export interface Place {
  top: number;
  /** Of what is in view, in pixels. */
  height: number;
  width: number;
  isFollowing: boolean;
}

export class Scroller {
  private place: Place = { top: 0, height: 600, width: 0, isFollowing: true };
  private box: HTMLElement | null = null;
  private rows = 0;
  private pastRows = 0;
  private listeners = new Set<() => void>();

  /** Watches the element that scrolls. Returns how to leave it. */
  attach = (box: HTMLElement | null): (() => void) | undefined => {
    if (box === null) return undefined;
    this.box = box;
    const watcher = new ResizeObserver(this.look);
    watcher.observe(box);
    box.addEventListener("scroll", this.scrolled, { passive: true });
    return () => {
      watcher.disconnect();
      box.removeEventListener("scroll", this.scrolled);
      this.box = null;
    };
  };

  /** After rows were drawn: goes to `goal`, stays at the end, or stays with what is being read. */
  settle(rows: number, pastRows: number, goal: number | null): void {
    const came = pastRows - this.pastRows;
    const before = this.rows;
    this.rows = rows;
    this.pastRows = pastRows;
    const { box } = this;
    if (box === null) return;
    if (goal !== null) this.toRow(goal);
    else if (this.place.isFollowing) this.toBottom();
    else if (came !== 0)
      this.go(scrollTo(rowAt(before, box.scrollTop, box.clientHeight) + came, rows, box.clientHeight));
  }

  toRow(row: number): void {
    this.set({ isFollowing: false });
    this.go(scrollTo(Math.max(0, row - ABOVE), this.rows, this.box?.clientHeight ?? 0));
  }

  toEnd = (): void => {
    this.set({ isFollowing: true });
    this.toBottom();
  };

  firstRow(): number {
    return Math.floor(rowAt(this.rows, this.place.top, this.place.height));
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  snapshot = (): Place => this.place;

  private toBottom(): void {
    if (this.box) this.go(this.box.scrollHeight);
  }

  private go(top: number): void {
    if (this.box === null) return;
    this.box.scrollTop = top;
    this.look();
  }

  private look = (): void => {
    const { box } = this;
    if (box) this.set({ top: box.scrollTop, height: box.clientHeight, width: box.clientWidth });
  };

  private scrolled = (): void => {
    const { box } = this;
    if (box === null) return;
    const isAtEnd = box.scrollTop >= box.scrollHeight - box.clientHeight - AT_END_PX;
    if (isAtEnd) this.set({ isFollowing: true });
    else if (box.scrollTop < this.place.top) this.set({ isFollowing: false });
    this.look();
  };

  private set(change: Partial<Place>): void {
    const next = { ...this.place, ...change };
    const { top, height, width, isFollowing } = this.place;
    if (next.top === top && next.height === height && next.width === width && next.isFollowing === isFollowing) return;
    this.place = next;
    for (const listener of this.listeners) listener();
  }
}
