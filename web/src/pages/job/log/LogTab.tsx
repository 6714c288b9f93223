import { Group, Stack } from "@mantine/core";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import type { LiveJob } from "@/pages/job/live/live-job";
import { LogFiles } from "@/pages/job/log/LogFiles";
import { LogPast } from "@/pages/job/log/LogPast";
import { LogRows } from "@/pages/job/log/LogRows";
import { LogToolbar } from "@/pages/job/log/LogToolbar";
import { useOptions } from "@/pages/job/log/options";
import { useLogView } from "@/pages/job/log/use-log-view";

export default function LogTab({ job, isOver }: { job: LiveJob; isOver: boolean }) {
  const [options, change] = useOptions();
  const { view, scroller, place, columns } = useLogView(job.log, options);
  const isLooking = options.find !== "" || options.isTrouble;
  const isAtTop = !place.isFollowing && place.top <= 0;
  if (job.log.length === 0 && job.log.past === "whole" && isOver)
    return <Empty title="This job wrote nothing" command={`crucible events ${job.jobId}`} />;
  return (
    <Stack gap="xs">
      <Group justify="space-between" gap="xs">
        <LogToolbar
          options={options}
          onChange={change}
          view={view}
          ranks={[...job.log.ranks].sort((a, b) => a - b)}
          attempts={[...job.log.attempts].sort((a, b) => a - b)}
        />
        <LogFiles view={view} jobId={job.jobId} task={job.task} />
      </Group>
      <LogPast job={job} isWanted={isAtTop || isLooking} />
      <LogRows
        view={view}
        onBox={scroller.attach}
        onEnd={scroller.toEnd}
        place={place}
        columns={columns}
        hasTimes={options.hasTimes}
        note={
          job.log.length === 0 && (job.log.past === "whole" || isWaiting(job)) ? "It has written nothing yet." : null
        }
      />
      <Command line={`crucible logs -f ${job.jobId}${job.task ? ` --task ${job.task}` : ""}`} />
    </Stack>
  );
}

/** Nothing of it has begun: there is nothing to look for. */
function isWaiting(job: LiveJob): boolean {
  return ["pending", "scheduled"].includes(job.snapshot().status?.status ?? "");
}
