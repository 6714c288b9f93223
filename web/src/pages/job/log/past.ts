/** Fetches what a task wrote before the lines that came live, from the first one to where they begin. */
import { api, errorOf } from "@/api/client";
import type { LogLine } from "@/api/job-stream";
import { breath } from "@/pages/job/log/breath";
import type { LogStore } from "@/pages/job/log/log-store";

const SLICE_MS = 8;

export interface Of {
  jobId: string;
  task: number;
}

/** Whether there is anything before: a look at the first line, which costs little. Raises ApiError if they are gone. */
export async function lookAtPast(log: LogStore, of: Of, signal: AbortSignal): Promise<void> {
  const stop = new AbortController();
  const both = AbortSignal.any([signal, stop.signal]);
  try {
    for await (const lines of records(of, both)) {
      const first = lines[0];
      if (first === undefined) continue;
      log.setPast(log.joint === null || log.isJoint(first) ? "whole" : "missing");
      return;
    }
    log.setPast("whole");
  } catch (error) {
    if (!signal.aborted) log.setPast("failed", error);
  } finally {
    stop.abort();
  }
}

export async function loadPast(log: LogStore, of: Of, signal: AbortSignal): Promise<void> {
  if (log.past === "loading" || log.past === "whole") return;
  log.setPast("loading");
  const stop = new AbortController();
  try {
    for await (const lines of records(of, AbortSignal.any([signal, stop.signal]))) {
      const joint = lines.findIndex((line) => log.isJoint(line));
      log.appendPast(joint < 0 ? lines : lines.slice(0, joint));
      if (joint >= 0) break;
    }
    log.setPast("whole");
  } catch (error) {
    if (!signal.aborted) log.setPast("failed", error);
  } finally {
    stop.abort();
  }
}

/** Lines as they come, some at a time, with a breath for the page in between. */
async function* records({ jobId, task }: Of, signal: AbortSignal): AsyncGenerator<LogLine[]> {
  const { data, error, response } = await api.GET("/v1/jobs/{job_id}/logs", {
    params: { path: { job_id: jobId }, query: { format: "json", task } },
    parseAs: "stream",
    signal,
  });
  if (!response.ok || !data) throw errorOf(error, response);
  const reader = (data as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let since = performance.now();
  for (;;) {
    const { done, value } = await reader.read();
    const texts = (rest + decoder.decode(value, { stream: !done })).split("\n");
    rest = texts.pop() ?? "";
    yield texts.filter(Boolean).map((text) => JSON.parse(text) as LogLine);
    if (done) return;
    if (performance.now() - since > SLICE_MS) {
      await breath();
      since = performance.now();
    }
  }
}
