/** A job as it happens, kept for the components that show it: how it stands, and its log. What comes within one frame is
 * told once. */
import { openJobStream, type Connection, type StreamMessage } from "@/api/job-stream";
import { LogStore } from "@/pages/job/log/log-store";
import { lookAtPast } from "@/pages/job/log/past";

/** Lines of the end that are there at once; what was before is fetched when somebody goes there. */
export const TAIL_LINES = 10_000;

type Of<Type extends StreamMessage["type"]> = Extract<StreamMessage, { type: Type }>;

export interface Live {
  connection: Connection;
  status: Of<"status"> | null;
  progress: Of<"progress"> | null;
  cost: Of<"cost"> | null;
  health: Of<"health"> | null;
}

export class LiveJob {
  readonly log = new LogStore();
  /** Aborted when nobody looks any more. */
  over: AbortSignal = new AbortController().signal;
  private live: Live = { connection: "connecting", status: null, progress: null, cost: null, health: null };
  private listeners = new Set<() => void>();
  private isTelling = false;
  private hasLooked = false;

  constructor(
    readonly jobId: string,
    readonly task: number,
    private readonly token: string,
  ) {}

  /** Returns how to end it. */
  open(): () => void {
    const over = new AbortController();
    this.over = over.signal;
    const look = () => {
      if (this.hasLooked) return;
      this.hasLooked = true;
      void lookAtPast(this.log, this, over.signal);
    };
    const close = openJobStream({
      jobId: this.jobId,
      token: this.token,
      task: this.task,
      tail: TAIL_LINES,
      metrics: false,
      onConnection: (connection) => this.set({ connection }),
      onMessage: (message) => {
        this.take(message);
        if (message.type === "log" || message.type === "end") look();
      },
    });
    return () => {
      over.abort();
      close();
    };
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  snapshot = (): Live => this.live;

  private take(message: StreamMessage): void {
    if (message.type === "log") this.log.append(message.lines);
    else if (message.type === "status" || message.type === "progress") this.set({ [message.type]: message });
    else if (message.type === "cost" || message.type === "health") this.set({ [message.type]: message });
  }

  private set(change: Partial<Live>): void {
    this.live = { ...this.live, ...change };
    if (this.isTelling) return;
    this.isTelling = true;
    queueMicrotask(() => {
      this.isTelling = false;
      for (const listener of this.listeners) listener();
    });
  }
}
