/** The list that one scrolls through: pages are fetched as one comes to them, and those in view are asked again. */
import { api, told } from "@/api/client";
import { spliced, type Brief } from "@/pages/jobs/book";
import type { Filters } from "@/pages/jobs/filters";

const PAGE = 200; // the most that the server gives at once

export interface Listed {
  jobs: Brief[];
  /** Everything is there. */
  isWhole: boolean;
  isLoading: boolean;
  error: unknown;
  updatedAt: number;
}

interface At {
  cursor: string | null;
  after: Brief | null;
}

export class JobList {
  private listed: Listed = { jobs: [], isWhole: false, isLoading: true, error: null, updatedAt: 0 };
  /** How the next page is asked for, and behind whom it begins. */
  private next: At = { cursor: null, after: null };
  /** Those that were fetched. */
  private pages: At[] = [];
  private listeners = new Set<() => void>();
  private isBusy = false;
  private over = new AbortController();

  /** Where one is in what goes by these words, in pixels. */
  private place = { words: "", top: 0 };

  constructor(private readonly filters: Omit<Filters, "words">) {}

  isOf(filters: Omit<Filters, "words">): boolean {
    return JSON.stringify(filters) === JSON.stringify(this.filters);
  }

  stay(words: string, top: number): void {
    this.place = { words, top };
  }

  topOf(words: string): number {
    return this.place.words === words ? this.place.top : 0;
  }

  /** The next page, if there is one. */
  async more(): Promise<void> {
    if (this.isBusy || this.listed.isWhole) return;
    this.set({ isLoading: true });
    await this.fetch(this.next, this.pages.length);
  }

  /** Asks again for what is in view. */
  async refresh(first: number): Promise<void> {
    if (this.isBusy) return;
    if (this.pages.length === 0) return this.more();
    const index = Math.min(Math.floor(first / PAGE), this.pages.length - 1);
    await this.fetch(this.pages[index] ?? this.next, index);
  }

  open(): void {
    this.over = new AbortController();
    this.isBusy = false;
    void this.refresh(0);
  }

  close(): void {
    this.over.abort();
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  snapshot = (): Listed => this.listed;

  private async fetch(at: At, index: number): Promise<void> {
    const { signal } = this.over;
    this.isBusy = true;
    try {
      const query = this.query(at.cursor);
      const page = await told(api.GET("/v1/jobs", { params: { query }, signal }));
      if (signal.aborted) return;
      const isWhole = page.next_cursor === null;
      if (isWhole || index >= this.pages.length - 1) {
        this.pages = [...this.pages.slice(0, index), at];
        this.next = { cursor: page.next_cursor, after: page.items.at(-1) ?? at.after };
        this.set({ isWhole });
      }
      this.set({ jobs: spliced(this.listed.jobs, page, at.after), error: null, updatedAt: Date.now() });
    } catch (error) {
      if (!signal.aborted) this.set({ error });
    } finally {
      if (!signal.aborted) {
        this.isBusy = false;
        this.set({ isLoading: false });
      }
    }
  }

  private query(cursor: string | null) {
    const { status, team, project, user } = this.filters;
    const given = Object.entries({ status, team, project, user, cursor }).filter(([, value]) => value);
    return { limit: PAGE, ...(Object.fromEntries(given) as Record<string, string>) };
  }

  private set(change: Partial<Listed>): void {
    this.listed = { ...this.listed, ...change };
    for (const listener of this.listeners) listener();
  }
}
