/** A job as it happens. Every message carries a cursor; after a break the stream goes on from the last one, so nothing is
 * missed and nothing comes twice. */
import { socketServer } from "@/place";
import type { Shape } from "@/api/client";

/** Numbered (`n`) within its attempt and rank. */
export interface LogLine {
  attempt: number;
  rank: number;
  n: number;
  /** Milliseconds since 1970. */
  t: number;
  /** Which of its two streams the program wrote to. */
  s: string;
  /** The text. */
  x: string;
  /** Part of a line that goes on in the next one. */
  p?: boolean;
}
export interface MetricPoint {
  attempt: number;
  rank: number;
  n: number;
  t: number;
  step: number | null;
  values: Record<string, number>;
}
export type StreamMessage = { cursor: string } & (
  | { type: "status"; status: string; desired: string; reason: string | null; at: string; from?: string | null }
  | {
      type: "progress";
      step: number | null;
      total_steps: number | null;
      fraction: number | null;
      at: string;
      metrics: Record<string, number>;
    }
  | ({ type: "cost" } & Shape<"crucible__wire__rest__Cost">)
  | { type: "health"; status: string; findings: Record<string, unknown>[] }
  | { type: "metrics"; points: MetricPoint[] }
  | { type: "log"; lines: LogLine[] }
  | { type: "end"; status: string; reason: string | null }
);
export type Connection = "connecting" | "live" | "reconnecting" | "ended";

export interface StreamOptions {
  jobId: string;
  token: string;
  task?: number;
  /** Only so many of the lines that are there already. */
  tail?: number;
  /** False: charts are asked for instead of every point. */
  metrics?: boolean;
  onMessage: (message: StreamMessage) => void;
  onConnection: (connection: Connection) => void;
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

/** Returns how to end it. */
export function openJobStream(options: StreamOptions): () => void {
  let socket: WebSocket | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let cursor: string | null = null;
  let failures = 0;
  let isOver = false;

  const connect = () => {
    const address = new URL(`v1/jobs/${encodeURIComponent(options.jobId)}/stream`, socketServer);
    if (options.metrics === false) address.searchParams.set("metrics", "false");
    if (options.task) address.searchParams.set("task", String(options.task));
    if (cursor) address.searchParams.set("cursor", cursor);
    else if (options.tail !== undefined) address.searchParams.set("tail", String(options.tail));
    socket = new WebSocket(address, ["crucible.v1", `bearer.${options.token}`]);
    socket.onopen = () => {
      failures = 0;
      options.onConnection("live");
    };
    socket.onmessage = (event: MessageEvent<string>) => take(JSON.parse(event.data) as StreamMessage);
    socket.onclose = () => {
      if (isOver) return;
      options.onConnection("reconnecting");
      timer = setTimeout(connect, Math.min(FIRST_WAIT_MS * 2 ** failures++, LONGEST_WAIT_MS));
    };
  };
  const take = (message: StreamMessage) => {
    if (isOver) return;
    cursor = message.cursor;
    options.onMessage(message);
    if (message.type === "end") {
      isOver = true;
      options.onConnection("ended");
      socket?.close();
    }
  };
  const retryNow = () => {
    if (isOver || socket?.readyState === WebSocket.OPEN || socket?.readyState === WebSocket.CONNECTING) return;
    clearTimeout(timer);
    connect();
  };

  options.onConnection("connecting");
  connect();
  window.addEventListener("online", retryNow);
  return () => {
    isOver = true;
    clearTimeout(timer);
    window.removeEventListener("online", retryNow);
    socket?.close();
  };
}
