/** The log as a file, and on the clipboard. */
import { Button, Group } from "@mantine/core";
import { api, errorOf } from "@/api/client";
import { DownloadIcon } from "@/parts/icons";
import { plural } from "@/parts/words";
import { say } from "@/parts/say";
import { plain } from "@/pages/job/log/ansi";
import { breath } from "@/pages/job/log/breath";
import type { LogView } from "@/pages/job/log/log-view";
import { save } from "@/pages/job/save";

const MOST_COPIED = 200_000; // rows; more than anybody pastes
const LOOKS = 10_000; // rows between two breaths: some milliseconds

export function LogFiles({ view, jobId, task }: { view: LogView; jobId: string; task: number }) {
  return (
    <Group gap="xs">
      <Button size="xs" variant="default" onClick={() => void copy(view)}>
        Copy
      </Button>
      <Button
        size="xs"
        variant="default"
        leftSection={<DownloadIcon size={14} />}
        onClick={() => void download(jobId, task)}
      >
        Download
      </Button>
    </Group>
  );
}

async function copy(view: LogView) {
  const from = Math.max(0, view.length - MOST_COPIED);
  const lines: string[] = [];
  for (let at = from; at < view.length; at += 1) {
    const { part, line } = view.row(at);
    if (part === 0) lines.push(plain(line.text));
    if (at % LOOKS === 0) await breath();
  }
  try {
    await navigator.clipboard.writeText(lines.join("\n"));
  } catch {
    say({ color: "red", message: "The browser lets nothing be copied here: download it instead." });
    return;
  }
  say({ message: `${plural(lines.length, "line")} copied${from > 0 ? ", the last ones" : ""}` });
}

async function download(jobId: string, task: number) {
  const asked = await api.GET("/v1/jobs/{job_id}/logs", {
    params: { path: { job_id: jobId }, query: { task } },
    parseAs: "blob",
  });
  if (!asked.response.ok || !asked.data) {
    const problem = errorOf(asked.error, asked.response);
    say({ color: "red", title: problem.code, message: problem.message });
    return;
  }
  save(asked.data as unknown as Blob, task ? `${jobId}-${task}.log` : `${jobId}.log`);
}
