/** Says that there are lines before those that are shown, and fetches them. */
import { Button, Group, Loader, Text } from "@mantine/core";
import { useEffect, useEffectEvent } from "react";
import { ErrorNote } from "@/parts/ErrorNote";
import { count } from "@/parts/words";
import type { LiveJob } from "@/pages/job/live/live-job";
import { loadPast } from "@/pages/job/log/past";

/** `isWanted`: somebody went to the top, or looks for something. */
export function LogPast({ job, isWanted }: { job: LiveJob; isWanted: boolean }) {
  const { log } = job;
  const load = useEffectEvent((signal: AbortSignal) => void loadPast(log, job, signal));
  const isDue = isWanted && log.past === "missing";
  useEffect(() => {
    if (isDue) load(job.over);
  }, [isDue, job]);

  if (log.past === "failed") return <ErrorNote error={log.error} onRetry={() => void loadPast(log, job, job.over)} />;
  if (log.past === "loading")
    return (
      <Group gap="xs" role="status">
        <Loader size="xs" />
        <Text size="xs">earlier lines are coming: {count(log.head.length)} so far</Text>
      </Group>
    );
  if (log.past !== "missing") return null;
  return (
    <Group gap="xs">
      <Text size="xs" className="dim">
        These are the last {count(log.tail.length)} lines.
      </Text>
      <Button size="compact-xs" variant="subtle" onClick={() => void loadPast(log, job, job.over)}>
        Load everything before them
      </Button>
    </Group>
  );
}
