/** What one wants to know first: what it costs, how far it is, when it will be done. */
import { Progress, SimpleGrid } from "@mantine/core";
import { Figure } from "@/parts/Figure";
import { When } from "@/parts/When";
import { count, duration, percent, rate, usd } from "@/parts/words";
import type { Live } from "@/pages/job/live/live-job";
import type { Job, JobStatus } from "@/pages/job/queries";
import { Told } from "@/pages/job/Told";

interface Props {
  job: Job;
  status: JobStatus | undefined;
  live: Live;
}

export function JobFigures({ job, status, live }: Props) {
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="xs">
      <CostSoFar job={job} status={status} live={live} />
      <PerHour status={status} />
      <Remaining job={job} status={status} />
      <HowFar job={job} status={status} live={live} />
    </SimpleGrid>
  );
}

function CostSoFar({ job, status, live }: Props) {
  const soFar =
    live.connection === "live" ? (live.cost?.running_usd ?? status?.cost.so_far_usd) : status?.cost.so_far_usd;
  return (
    <Figure
      label="Cost so far"
      value={
        <Told of="status" name="cost.so_far_usd" value={soFar}>
          {usd(soFar)}
        </Told>
      }
      note={
        <>
          {job.cost.estimated_usd !== null && `estimated ${usd(job.cost.estimated_usd)}`}
          {job.budget_usd !== null && ` · budget ${usd(job.budget_usd)}`}
        </>
      }
    />
  );
}

function PerHour({ status }: Pick<Props, "status">) {
  const cost = status?.cost;
  return (
    <Figure
      label="Per hour now"
      value={
        <Told of="status" name="cost.per_hour_usd" value={cost?.per_hour_usd}>
          {rate(cost?.per_hour_usd)}
        </Told>
      }
      note={
        cost?.at_risk_usd != null && (
          <Told of="status" name="cost.at_risk_usd" value={cost.at_risk_usd}>
            {usd(cost.at_risk_usd)} of work in no checkpoint yet
          </Told>
        )
      }
    />
  );
}

function Remaining({ job, status }: Pick<Props, "job" | "status">) {
  const cost = status?.cost;
  if (cost?.remaining_usd == null) {
    const why = status?.unknown["remaining"] ?? status?.unknown["eta"];
    return <Figure label="Still to come" value="–" note={job.timestamps.finished_at ? "it is over" : why} />;
  }
  return (
    <Figure
      label="Still to come"
      value={
        <Told of="status" name="cost.remaining_usd" value={cost.remaining_usd}>
          {usd(cost.remaining_usd)}
        </Told>
      }
      note={
        <Told of="status" name="cost.remaining_high_usd" value={cost.remaining_high_usd}>
          nine of ten times at most {usd(cost.remaining_high_usd)}
        </Told>
      }
    />
  );
}

function HowFar({ job, status, live }: Props) {
  const told = live.progress && live.connection === "live" ? live.progress : (status?.progress ?? job.progress);
  const fraction = told?.fraction;
  const steps =
    told?.step != null && `step ${count(told.step)}${told.total_steps ? ` of ${count(told.total_steps)}` : ""}`;
  return (
    <Figure
      label="Progress"
      value={
        <Told of="status" name="progress.fraction" value={fraction}>
          {fraction == null ? "–" : percent(fraction, 1)}
        </Told>
      }
      note={
        <>
          {fraction != null && <Progress value={fraction * 100} size="sm" my={4} aria-label="progress" />}
          {steps}
          <Eta job={job} status={status} />
        </>
      }
    />
  );
}

function Eta({ job, status }: Pick<Props, "job" | "status">) {
  if (job.timestamps.finished_at)
    return (
      <div>
        ended <When at={job.timestamps.finished_at} />
      </div>
    );
  if (!status?.eta) return null;
  return (
    <div>
      <Told of="status" name="eta.seconds" value={status.eta.seconds}>
        done in {duration(status.eta.seconds)}
      </Told>
      , {duration(status.eta.seconds_high)} at the latest
    </div>
  );
}
