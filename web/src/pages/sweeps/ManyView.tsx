/** One job of many parts: what it is says how it is shown. */
import { Anchor, Group } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { Page } from "@/parts/Page";
import { StateBadge } from "@/parts/StateBadge";
import { When } from "@/parts/When";
import { BatchView } from "@/pages/sweeps/BatchView";
import { EvaluationView } from "@/pages/sweeps/EvaluationView";
import { kindOf, showCommand } from "@/pages/sweeps/kinds";
import { SearchView } from "@/pages/sweeps/SearchView";
import { WorkflowView } from "@/pages/sweeps/WorkflowView";
import { useJob, type JobView } from "@/pages/sweeps/queries";

export function ManyView({ jobId }: { jobId: string }) {
  const query = useJob(jobId);
  const job = query.data;
  return (
    <Page
      title={job?.name ?? "Sweeps"}
      about={
        <Group gap="sm" mt={4}>
          <Anchor component={Link} to="/sweeps" size="sm">
            ← all
          </Anchor>
          {job && <StateBadge state={job.status} />}
          {job && (
            <span>
              by {job.user_id}, created <When at={job.timestamps.created_at} />
            </span>
          )}
          <Anchor component={Link} to={`/jobs/${jobId}`} size="sm">
            logs, metrics, costs and events of the job
          </Anchor>
        </Group>
      }
      actions={<Command line={showCommand(job ? kindOf(job) : null, jobId)} />}
    >
      <Loaded query={query} lines={6}>
        {(found) => <Parts job={found} />}
      </Loaded>
    </Page>
  );
}

function Parts({ job }: { job: JobView }) {
  switch (kindOf(job)) {
    case "search":
      return <SearchView job={job} />;
    case "workflow":
      return <WorkflowView job={job} />;
    case "evaluation":
      return <EvaluationView job={job} />;
    case "batch":
      return <BatchView job={job} />;
    default:
      return <Empty title="This job is of one piece" command={`crucible describe ${job.id}`} />;
  }
}
