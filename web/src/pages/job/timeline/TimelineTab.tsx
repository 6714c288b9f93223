import { Stack } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { Charted } from "@/charts/Charted";
import { Command } from "@/parts/Command";
import { Loaded } from "@/parts/Loaded";
import { useNow } from "@/parts/now";
import { When } from "@/parts/When";
import { duration } from "@/parts/words";
import type { TabProps } from "@/pages/job/JobTabs";
import { useAttemptsOf, useCheckpoints } from "@/pages/job/queries";
import { targetOf, timeline, type Life } from "@/pages/job/timeline/geometry";
import { Legend, Picture } from "@/pages/job/timeline/Picture";

export default function TimelineTab({ job, task, isOver }: TabProps) {
  const now = useNow();
  const { ref, width } = useElementSize();
  const { attempts, items } = useAttemptsOf(job, task, isOver);
  const checkpoints = useCheckpoints(job.id, task, isOver);
  const life: Life = {
    createdAt: job.timestamps.created_at,
    finishedAt: job.timestamps.finished_at,
    now: now.getTime(),
    attempts: items,
    checkpoints: checkpoints.data?.items ?? [],
  };
  return (
    <Stack gap="sm">
      <Loaded query={attempts}>
        {() => (
          <Charted label="attempts over time" behind={behind(life)}>
            <Legend />
            <div ref={ref} style={{ overflowX: "auto" }}>
              <Picture drawn={timeline(life, Math.max(width, 640))} width={Math.max(width, 640)} />
            </div>
          </Charted>
        )}
      </Loaded>
      <Command line={`crucible events ${job.id}`} />
    </Stack>
  );
}

function behind({ attempts, checkpoints }: Life) {
  const seconds = (from: string, to: string | null) =>
    to === null ? null : (Date.parse(to) - Date.parse(from)) / 1000;
  return {
    columns: ["attempt", "on", "began", "provisioning", "running", "came to", "goes on from", "checkpoints"],
    rows: attempts.map((one) => [
      one.number,
      targetOf(one),
      <When key="at" at={one.created_at} exact />,
      duration(seconds(one.created_at, one.started_at ?? one.ended_at)),
      duration(one.started_at === null ? null : seconds(one.started_at, one.ended_at)),
      one.outcome ?? one.phase,
      one.resume_step === null ? "the beginning" : `step ${one.resume_step}`,
      checkpoints
        .filter((saved) => saved.attempt_id === one.id)
        .map((saved) => saved.step)
        .join(", "),
    ]),
  };
}
