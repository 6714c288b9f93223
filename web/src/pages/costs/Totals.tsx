/** What the period came to, what of it was of use, what runs now, and what it will come to. */
import { SimpleGrid } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Asked } from "@/pages/costs/asked";
import { reportQuery, type CostReport } from "@/pages/costs/queries";
import { Figure } from "@/parts/Figure";
import { Told } from "@/parts/Told";
import { count, percent, rate, usd } from "@/parts/words";

export function Totals({ report, answer, asked }: { report: CostReport; answer: string; asked: Asked }) {
  const { total, forecast } = report;
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }} spacing="sm" data-answer={answer}>
      <Figure
        label="Spent"
        value={<Told at="total.cost_usd" value={total.cost_usd} write={usd} />}
        note={
          <>
            <Told at="total.jobs" value={total.jobs} write={count} /> {total.jobs === 1 ? "job" : "jobs"},{" "}
            <Told at="total.gpu_hours" value={total.gpu_hours} write={count} /> GPU hours
          </>
        }
      />
      <Figure
        label="Useful"
        value={<Told at="total.useful_usd" value={total.useful_usd} write={usd} />}
        note={
          total.cost_usd > 0 ? (
            <>
              <Told
                at="total.useful_usd/total.cost_usd"
                value={total.useful_usd / total.cost_usd}
                write={(share) => percent(share, 1)}
              />{" "}
              of it
            </>
          ) : (
            "while ranks ran"
          )
        }
      />
      <Figure
        label="Idle"
        value={<Told at="total.idle_usd" value={total.idle_usd} write={usd} />}
        note="booting, setup, waiting, giving back"
      />
      <Beside asked={asked} />
      <Figure
        label="Running now"
        value={<Told at="per_hour_usd" value={report.per_hour_usd} write={rate} />}
        note="everything that is charged for"
      />
      <Figure
        label="Forecast"
        value={<Told at="forecast.total_usd" value={forecast?.total_usd} write={usd} />}
        note={
          forecast ? (
            <>
              by its end, at <Told at="forecast.per_day_usd" value={forecast.per_day_usd} write={usd} /> a day
            </>
          ) : (
            "of a period that goes on, after an hour"
          )
        }
      />
    </SimpleGrid>
  );
}

const BESIDE = ["storage", "address", "transfer"];

/** What was not for computing: disks, addresses, moved data. */
function Beside({ asked }: { asked: Asked }) {
  const kinds = reportQuery(asked, "kind");
  const rows = useQuery(kinds).data?.rows;
  const told = (kind: string) => {
    const found = rows?.find((row) => row.key["kind"] === kind);
    return <Told at={`rows[kind=${kind}].cost_usd`} value={rows && (found?.cost_usd ?? 0)} write={usd} />;
  };
  return (
    <div data-answer={kinds.answer}>
      <Figure
        label="Compute"
        value={told("compute")}
        note={BESIDE.map((kind, place) => (
          <span key={kind}>
            {place > 0 && " · "}
            {kind} {told(kind)}
          </span>
        ))}
      />
    </div>
  );
}
