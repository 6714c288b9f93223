import { Anchor, Progress, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { memo } from "react";
import { StateBadge } from "@/parts/StateBadge";
import { Tick } from "@/parts/Tick";
import { When } from "@/parts/When";
import { count, percent, rate, usd } from "@/parts/words";
import { stateOf } from "@/pages/job/state";
import type { Brief } from "@/pages/jobs/book";
import classes from "@/pages/jobs/Jobs.module.css";

export interface JobRowProps {
  job: Brief;
  /** From 1, with the heading. */
  number: number;
  isChosen: boolean;
  /** Null for who may only look. */
  isPicked: boolean | null;
  onPick: (job: Brief) => void;
}

export const JobRow = memo(function JobRow({ job, number, isChosen, isPicked, onPick }: JobRowProps) {
  return (
    <div className={classes["row"]} role="row" aria-rowindex={number} data-chosen={isChosen || undefined}>
      <div role="cell" className={classes["pick"]}>
        {isPicked !== null && <Tick label={`select ${job.name}`} isOn={isPicked} onChange={() => onPick(job)} />}
      </div>
      <div role="cell" className={classes["name"]}>
        <Anchor component={Link} to="/jobs/$jobId" params={{ jobId: job.id } as never} size="sm" fw={600} truncate>
          {job.name}
        </Anchor>
        <span className={classes["about"]} title={job.reason ?? job.id}>
          {job.reason ?? [job.user_id, job.team, job.project].filter(Boolean).join(" / ")}
        </span>
      </div>
      <div role="cell" className={classes["state"]}>
        <StateBadge state={stateOf(job)} />
        {(job.health === "warning" || job.health === "critical") && <StateBadge state={job.health} />}
      </div>
      <div role="cell" className={classes["progress"]}>
        <HowFar job={job} />
      </div>
      <div role="cell" className={classes["where"]} title={placeOf(job)}>
        {placeOf(job)}
      </div>
      <div role="cell" className={`number ${classes["gpus"]}`}>
        {count(job.gpus)}
        <span className={classes["unit"]}> GPUs</span>
      </div>
      <div role="cell" className={`number ${classes["cost"]}`}>
        {usd(job.cost_usd)}
      </div>
      <div role="cell" className={`number ${classes["rate"]}`}>
        {job.per_hour_usd > 0 ? rate(job.per_hour_usd) : "–"}
      </div>
      <div role="cell" className={`number ${classes["age"]}`}>
        <When at={job.created_at} />
      </div>
    </div>
  );
});

export function HowFar({ job }: { job: Brief }) {
  if (job.progress === null) return <span className="dim">–</span>;
  return (
    <>
      <Progress value={job.progress * 100} size="sm" style={{ flex: 1 }} aria-label={`progress of ${job.name}`} />
      <Text size="xs" className="number" w={38}>
        {percent(job.progress)}
      </Text>
    </>
  );
}

function placeOf({ provider, region }: Brief): string {
  if (provider === null) return "–";
  return provider === region ? provider : `${provider} ${region ?? ""}`;
}
