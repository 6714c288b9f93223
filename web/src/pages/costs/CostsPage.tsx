/** What was spent, on what, and what it will come to. Every figure is the API's: nothing is added up here. */
import { Alert } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { Accuracy } from "@/pages/costs/Accuracy";
import { askedOf, commandOf, type Search } from "@/pages/costs/asked";
import { Breakdown } from "@/pages/costs/Breakdown";
import { Controls } from "@/pages/costs/Controls";
import { Downloads } from "@/pages/costs/Downloads";
import { OverTime } from "@/pages/costs/OverTime";
import { reportQuery } from "@/pages/costs/queries";
import { Savings } from "@/pages/costs/Savings";
import { Totals } from "@/pages/costs/Totals";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { useNow } from "@/parts/now";
import { Page } from "@/parts/Page";
import { Panel } from "@/parts/Panel";

const HOUR_MS = 3_600_000;

export default function CostsPage() {
  const search = useSearch({ strict: false });
  const navigate = useNavigate();
  const hour = Math.floor(useNow().getTime() / HOUR_MS); // periods change with the hour, not with every tick
  const asked = useMemo(() => askedOf(search, new Date(hour * HOUR_MS)), [search, hour]);
  const asking = reportQuery(asked, asked.by);
  const query = useQuery(asking);
  const change = (more: Search) => void navigate({ to: ".", search: (now: Search) => ({ ...now, ...more }) });
  return (
    <Page
      title="Costs"
      about="The ledger’s figures, to the second and the micro-dollar, with what runs now."
      actions={<Downloads asked={asked} />}
    >
      <Controls asked={asked} onChange={change} />
      {asked.period === null ? (
        <Alert color="orange" title={`“${asked.span}” is no period`}>
          Such as today, 7d, last month, 2026-11 or 2026-11-01..2026-11-15.
        </Alert>
      ) : (
        <>
          <Loaded query={query} lines={4}>
            {(report) => <Totals report={report} answer={asking.answer} asked={asked} />}
          </Loaded>
          <OverTime asked={asked} />
          <Panel
            title={`By ${asked.by.replace("_", " ")}`}
            aside={<Command line={commandOf("costs", asked.by, asked)} />}
          >
            <Loaded query={query} lines={6}>
              {(report) =>
                report.rows.length === 0 ? (
                  <Empty title="Nothing was spent" command="crucible submit job.yaml">
                    Own machines without a price cost nothing and are not here.
                  </Empty>
                ) : (
                  <Breakdown report={report} answer={asking.answer} asked={asked} />
                )
              }
            </Loaded>
          </Panel>
          <Savings asked={asked} />
          <Accuracy asked={asked} />
        </>
      )}
    </Page>
  );
}
