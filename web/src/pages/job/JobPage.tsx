import { Skeleton, Stack } from "@mantine/core";
import { useParams as usePath } from "@tanstack/react-router";
import { useQueryClient } from "@tanstack/react-query";
import { Suspense, useEffect } from "react";
import { Loaded } from "@/parts/Loaded";
import { Page } from "@/parts/Page";
import { numberOf, useAddress } from "@/parts/address";
import type { Shape } from "@/api/client";
import { JobActions } from "@/pages/job/actions/JobActions";
import { HealthFindings } from "@/pages/job/Health";
import { JobFigures } from "@/pages/job/JobFigures";
import { JobLine, JobLinks, JobReason } from "@/pages/job/JobHeader";
import { JobTabs } from "@/pages/job/JobTabs";
import { useLiveJob } from "@/pages/job/live/use-live-job";
import { TERMINAL, useJob, useStatus, type Job } from "@/pages/job/queries";

export default function JobPage() {
  const { jobId = "" } = usePath({ strict: false }) as { jobId?: string };
  const job = useJob(jobId);
  if (job.data) return <Loaded query={job}>{(found) => <Found key={jobId} job={found} />}</Loaded>;
  return (
    <Page title="Job">
      <Loaded query={job}>{() => null}</Loaded>
    </Page>
  );
}

function Found({ job }: { job: Job }) {
  const [params] = useAddress();
  const task = numberOf(params["task"]) ?? 0;
  const { job: stream, live } = useLiveJob(job.id, task);
  const isOver = TERMINAL.has(job.status);
  const status = useStatus(job.id, isOver);
  useNews(job, live.status?.status, live.status?.desired);
  const findings = isOver ? [] : ((live.health?.findings ?? status.data?.health.findings ?? []) as Shape<"Finding">[]);
  return (
    <Page
      title={job.name}
      about={<JobLine job={job} status={status.data} live={live} />}
      actions={<JobActions job={job} />}
    >
      <JobReason job={job} />
      <HealthFindings findings={findings} />
      <JobLinks job={job} />
      <JobFigures job={job} status={status.data} live={live} />
      <Suspense
        fallback={
          <Stack gap="xs">
            <Skeleton height={36} />
            <Skeleton height={300} />
          </Stack>
        }
      >
        <JobTabs job={job} task={task} stream={stream} isOver={isOver} />
      </Suspense>
    </Page>
  );
}

/** What the stream tells of a change is asked for at once: everything else on the page follows it. */
function useNews(job: Job, status: string | undefined, desired: string | undefined) {
  const queries = useQueryClient();
  const isNews = status !== undefined && (status !== job.status || desired !== job.desired);
  useEffect(() => {
    if (isNews) void queries.invalidateQueries({ queryKey: ["job", job.id] });
  }, [isNews, status, desired, queries, job.id]);
}
