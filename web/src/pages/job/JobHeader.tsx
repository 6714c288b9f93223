import { Alert, Anchor, Group, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { StateBadge } from "@/parts/StateBadge";
import { When } from "@/parts/When";
import { Told } from "@/parts/Told";
import { count } from "@/parts/words";
import { Place } from "@/pages/job/history/Target";
import { ConnectionBadge } from "@/pages/job/live/ConnectionBadge";
import type { Live } from "@/pages/job/live/live-job";
import { answerOf, type Job, type JobStatus } from "@/pages/job/queries";
import { stateOf } from "@/pages/job/state";

/** The line below the name: how it stands, whose it is, where it runs. */
export function JobLine({ job, status, live }: { job: Job; status: JobStatus | undefined; live: Live }) {
  const health = live.health?.status ?? status?.health.status;
  return (
    <Group gap="xs" mt={4}>
      <StateBadge state={stateOf(job)} />
      {health && health !== "unknown" && <StateBadge state={health === "ok" ? "healthy" : health} />}
      <ConnectionBadge connection={live.connection} />
      <Text size="sm" className="dim" component="div" data-answer={answerOf(job.id)}>
        {[job.user_id, job.team, job.project].filter(Boolean).join(" / ")} · {job.job_type}, {job.framework} ·{" "}
        <Told at="gpus" value={job.gpus} write={count} /> {job.gpus === 1 ? "GPU" : "GPUs"}
        {job.selected && <Selected of={job.selected} />} · submitted <When at={job.timestamps.created_at} />
      </Text>
    </Group>
  );
}

function Selected({ of }: { of: NonNullable<Job["selected"]> }) {
  return (
    <>
      {" "}
      · <Place of={of} at="selected" />, <Told at="selected.count" value={of.count} write={count} /> ×{" "}
      <Told at="selected.instance_type" value={of.instance_type} />
      {of.spot && " spot"}
    </>
  );
}

/** Why it waits, or what ended it. */
export function JobReason({ job }: { job: Job }) {
  if (!job.reason) return null;
  const isBad = job.status === "failed";
  return (
    <Alert color={isBad ? "red" : "blue"} variant="light" py="xs" role="status">
      <Text size="sm" style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }} data-answer={answerOf(job.id)}>
        <Told at="reason" value={job.reason} write={inLines} />
      </Text>
    </Alert>
  );
}

/** What a program said last stands as it was written, line by line. */
export function inLines(reason: string): string {
  const [why = "", said] = reason.split(LAST_LINES);
  return said === undefined ? reason : `${why}${LAST_LINES.trimEnd()}\n${said.replaceAll(" | ", "\n")}`;
}

const LAST_LINES = "; last lines: ";

/** Where it came from, and what it belongs to. */
export function JobLinks({ job }: { job: Job }) {
  const links: [string, string][] = [];
  if (job.origin) links.push(["made from", job.origin]);
  if (job.parent) links.push([`step ${(job.step ?? 0) + 1} of workflow`, job.parent]);
  if (links.length === 0 && job.steps === 0 && job.execution_mode === "single_cluster") return null;
  return (
    <Group gap="md">
      {links.map(([words, id]) => (
        <Text key={id} size="sm">
          {words}{" "}
          <Anchor component={Link} to="/jobs/$jobId" params={{ jobId: id } as never} className="mono">
            {id.slice(0, 8)}
          </Anchor>
        </Text>
      ))}
      {(job.steps > 0 || job.execution_mode !== "single_cluster") && (
        <Anchor component={Link} to="/sweeps" search={{ job: job.id } as never} size="sm">
          {job.steps > 0 ? "See its steps" : "See its trials"}
        </Anchor>
      )}
    </Group>
  );
}
