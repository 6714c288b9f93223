/** One workload, every provider: what it costs where, and which one a plan would take. */
import { Badge, Grid, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { Shape } from "@/api/client";
import { BarChart } from "@/charts/BarChart";
import { CompareTable } from "@/pages/compare/CompareTable";
import { comparisonQuery } from "@/pages/compare/queries";
import { costOf, quotesOf, unpricedOf } from "@/pages/compare/quotes";
import { Recommended } from "@/pages/compare/Recommended";
import { searchOf, workloadOf, type Workload } from "@/pages/compare/workload";
import { WorkloadForm } from "@/pages/compare/WorkloadForm";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { Page } from "@/parts/Page";
import { Panel } from "@/parts/Panel";
import { usd } from "@/parts/words";

export default function ComparePage() {
  const workload = workloadOf(useSearch({ strict: false }));
  const navigate = useNavigate();
  const query = useQuery(comparisonQuery(workload));
  const go = (next: Workload) => void navigate({ to: "/compare", search: searchOf(next), replace: true });
  return (
    <Page title="Compare" about="The cheapest way to hold so many GPUs, at each provider.">
      <WorkloadForm workload={workload} onChange={go} />
      <Loaded query={query} lines={8}>
        {(said) => <Compared said={said} workload={workload} isOld={query.isPlaceholderData} />}
      </Loaded>
      <Command line={`crucible compare --gpu ${workload.gpu}:${workload.gpus} --hours ${workload.hours}`} />
    </Page>
  );
}

interface Props {
  said: Shape<"Comparison">;
  workload: Workload;
  isOld: boolean;
}

function Compared({ said, workload, isOld }: Props) {
  const rows = quotesOf(said.items, workload.isSpot);
  const unpriced = unpricedOf(said.items);
  if (said.items.length === 0)
    return (
      <Empty title={`Nobody is known to have a GPU ${said.gpu}`} command="crucible offers --group-by gpu">
        Names are as the catalog writes them, or a family such as A100.
      </Empty>
    );
  const stale = rows.filter((row) => row.quote.is_stale).length;
  const bars = rows.map(({ id, quote }, at) => ({
    name: id,
    parts: [costOf(quote)],
    isChosen: at === 0,
    note: `${usd(costOf(quote))}${quote.is_stale && stale < rows.length ? " · old price" : ""}`,
  }));
  return (
    <div aria-busy={isOld}>
      <Grid gap="md">
        <Grid.Col span={{ base: 12, md: 7 }}>
          <Panel title="Estimated cost by provider" aside={<Stale count={stale} of={rows.length} />}>
            <BarChart
              label={`${said.gpus} × ${said.gpu} for ${said.hours} h`}
              parts={["total"]}
              bars={bars}
              write={usd}
            />
          </Panel>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 5 }}>
          <Recommended workload={workload} />
        </Grid.Col>
        <Grid.Col span={12}>
          <Panel title="Side by side">
            <CompareTable rows={rows} />
            <Text size="xs" className="dim">
              Hours are billed as each provider rounds them. A tick marks those that this server can buy from. The risk
              of spot is shown here and priced in by the recommendation.
              {unpriced.length > 0 && ` Nobody states a price of ${unpriced.join(", ")}.`}
            </Text>
          </Panel>
        </Grid.Col>
      </Grid>
    </div>
  );
}

function Stale({ count, of }: { count: number; of: number }) {
  if (count === 0) return null;
  return (
    <Badge color="orange" variant="light" tt="none">
      stale: {count === of ? "all prices" : `${count} of ${of} prices`}
    </Badge>
  );
}
