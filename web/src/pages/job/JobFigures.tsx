/** What one wants to know first: what it costs, how far it is, when it will be done. */
import { Progress, SimpleGrid } from "@mantine/core";
import { Figure } from "@/parts/Figure";
import { Told } from "@/parts/Told";
import { When } from "@/parts/When";
import { count, duration, percent, rate, usd } from "@/parts/words";
import type { Live } from "@/pages/job/live/live-job";
import { answerOf, type Job, type JobStatus } from "@/pages/job/queries";

interface Props {
  job: Job;
  status: JobStatus | undefined;
  live: Live;
}

export function JobFigures({ job, status, live }: Props) {
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="xs" data-answer={answerOf(job.id, "status")}>
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
  const { estimated_usd } = job.cost;
  return (
    <Figure
      label="Cost so far"
      value={<Told at="cost.so_far_usd" value={soFar} write={usd} />}
      note={
        <span data-answer={answerOf(job.id)}>
          {estimated_usd !== null && (
            <>
              estimated <Told at="cost.estimated_usd" value={estimated_usd} write={usd} />
            </>
          )}
          {estimated_usd !== null && job.budget_usd !== null && " · "}
          {job.budget_usd !== null && (
            <>
              budget <Told at="budget_usd" value={job.budget_usd} write={usd} />
            </>
          )}
        </span>
      }
    />
  );
}

function PerHour({ status }: Pick<Props, "status">) {
  const cost = status?.cost;
  return (
    <Figure
      label="Per hour now"
      value={<Told at="cost.per_hour_usd" value={cost?.per_hour_usd} write={rate} />}
      note={
        cost?.at_risk_usd != null && (
          <>
            <Told at="cost.at_risk_usd" value={cost.at_risk_usd} write={usd} /> of work in no checkpoint yet
          </>
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
      value={<Told at="cost.remaining_usd" value={cost.remaining_usd} write={usd} />}
      note={
        <>
          nine of ten times at most <Told at="cost.remaining_high_usd" value={cost.remaining_high_usd} write={usd} />
        </>
      }
    />
  );
}

function HowFar({ job, status, live }: Props) {
  const told = live.progress && live.connection === "live" ? live.progress : (status?.progress ?? job.progress);
  const fraction = told?.fraction;
  return (
    <Figure
      label="Progress"
      value={<Told at="progress.fraction" value={fraction} write={(value) => percent(value, 1)} />}
      note={
        <>
          {fraction != null && <Progress value={fraction * 100} size="sm" my={4} aria-label="progress" />}
          {told?.step != null && (
            <>
              step <Told at="progress.step" value={told.step} write={count} />
            </>
          )}
          {told?.step != null && told.total_steps != null && (
            <>
              {" "}
              of <Told at="progress.total_steps" value={told.total_steps} write={count} />
            </>
          )}
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
      done in <Told at="eta.seconds" value={status.eta.seconds} write={duration} />,{" "}
      <Told at="eta.seconds_high" value={status.eta.seconds_high} write={duration} /> at the latest
    </div>
  );
}
