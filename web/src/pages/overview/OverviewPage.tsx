import { Anchor, Grid, SimpleGrid, Stack } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { Loaded, Waiting } from "@/parts/Loaded";
import { useNow } from "@/parts/now";
import { Page } from "@/parts/Page";
import { Panel } from "@/parts/Panel";
import type { Shape } from "@/api/client";
import { concerns } from "@/pages/overview/attention";
import { First } from "@/pages/overview/First";
import { Attention, Ended, Nothing, Queue, Running } from "@/pages/overview/Lists";
import { useBudgets, useJobsIn, useOverview } from "@/pages/overview/queries";
import { Sums } from "@/pages/overview/Sums";

const Spend = lazy(() => import("@/pages/overview/Spend"));

const WORKING = "running,checkpointing";
const WAITING = "pending,scheduled,provisioning";
const OVER = "completed,failed,cancelled";
const LOOKED_AT = 100;
const SHOWN = 8;

export default function OverviewPage() {
  const overview = useOverview();
  return (
    <Page title="Overview">
      <Loaded query={overview}>{(found) => <Found overview={found} />}</Loaded>
    </Page>
  );
}

function Found({ overview }: { overview: Shape<"Overview"> }) {
  const isNew = Object.values(overview.jobs).every((many) => many === 0);
  return (
    <Stack gap="md">
      <Sums overview={overview} />
      {isNew ? <First /> : <Panels />}
    </Stack>
  );
}

function Panels() {
  const working = useJobsIn(WORKING, LOOKED_AT);
  const waiting = useJobsIn(WAITING, SHOWN);
  const failed = useJobsIn("failed", SHOWN);
  const over = useJobsIn(OVER, SHOWN);
  const budgets = useBudgets();
  const now = useNow();
  const running = working.data?.items ?? [];
  const found = concerns(running, failed.data?.items ?? [], budgets.data?.items ?? [], now);
  return (
    <>
      <SimpleGrid cols={{ base: 1, md: 3 }} spacing="md">
        <Panel title="Needs attention">
          {found.length > 0 ? <Attention found={found.slice(0, SHOWN)} /> : <Nothing>nothing</Nothing>}
        </Panel>
        <Panel title="Running" aside={<All status={WORKING} />}>
          <Loaded query={working}>
            {({ items }) =>
              items.length > 0 ? <Running jobs={items.slice(0, SHOWN)} /> : <Nothing>nothing runs</Nothing>
            }
          </Loaded>
        </Panel>
        <Panel title="Queue" aside={<All status={WAITING} />}>
          <Loaded query={waiting}>
            {({ items }) => (items.length > 0 ? <Queue jobs={items} /> : <Nothing>nothing waits</Nothing>)}
          </Loaded>
        </Panel>
      </SimpleGrid>
      <Grid>
        <Grid.Col span={{ base: 12, md: 8 }}>
          <Suspense fallback={<Waiting lines={6} />}>
            <Spend />
          </Suspense>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 4 }}>
          <Panel title="Just ended" aside={<All status={OVER} />}>
            <Loaded query={over}>
              {({ items }) => (items.length > 0 ? <Ended jobs={items} /> : <Nothing>nothing has ended yet</Nothing>)}
            </Loaded>
          </Panel>
        </Grid.Col>
      </Grid>
    </>
  );
}

function All({ status }: { status: string }) {
  return (
    <Anchor component={Link} to="/jobs" search={{ status } as never} size="xs">
      all of them
    </Anchor>
  );
}
