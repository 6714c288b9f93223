/** All of them, the newest first, by kind. */
import { Anchor, Button, Group, Progress, SegmentedControl, Table, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { Page } from "@/parts/Page";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { StateBadge } from "@/parts/StateBadge";
import { When } from "@/parts/When";
import { useAddress } from "@/parts/address";
import { count, percent, usd } from "@/parts/words";
import { KINDS, kindOf, type Kind } from "@/pages/sweeps/kinds";
import { useMany, type Brief } from "@/pages/sweeps/queries";

const COLUMNS = ["Name", "Kind", "State", "Done", "By", "Where", { title: "Cost", isNumber: true }, "Created"];
const ONE: Record<Kind, string> = { search: "search", workflow: "workflow", evaluation: "evaluation", batch: "batch" };

export function ManyList() {
  const [{ kind = "" }, change] = useAddress();
  const query = useMany();
  return (
    <Page title="Sweeps" about="Searches, workflows, evaluations and batches: jobs that are made of many parts.">
      <Group>
        <SegmentedControl
          aria-label="Kind"
          size="xs"
          value={kind}
          onChange={(value) => change({ kind: value })}
          data={[{ value: "", label: "All" }, ...KINDS.map((one) => ({ value: one.kind, label: one.title }))]}
        />
      </Group>
      <Panel>
        <Loaded query={query} lines={6}>
          {({ pages }) => {
            const jobs = pages.flatMap((page) => page.items);
            const shown = jobs.filter((job) => (kind ? kindOf(job) === kind : kindOf(job) !== null));
            return (
              <>
                {shown.length === 0 ? <NoneYet kind={kind} /> : <JobTable jobs={shown} />}
                <Group justify="space-between">
                  <Text size="xs" className="dim">
                    {count(shown.length)} among the newest {count(jobs.length)} jobs
                  </Text>
                  {query.hasNextPage && (
                    <Button
                      size="xs"
                      variant="default"
                      loading={query.isFetchingNextPage}
                      onClick={() => void query.fetchNextPage()}
                    >
                      Look further back
                    </Button>
                  )}
                </Group>
              </>
            );
          }}
        </Loaded>
      </Panel>
    </Page>
  );
}

function NoneYet({ kind }: { kind: string }) {
  const chosen = KINDS.find((one) => one.kind === kind) ?? KINDS[0];
  return (
    <Empty title="None here yet" command={chosen?.command}>
      A search tries many settings, a workflow is steps that need each other, an evaluation compares models, a batch
      goes through many items.
    </Empty>
  );
}

function JobTable({ jobs }: { jobs: Brief[] }) {
  return (
    <Rows label="Searches, workflows, evaluations and batches" columns={COLUMNS} minWidth={860}>
      {jobs.map((job) => {
        const kind = kindOf(job);
        return (
          <Table.Tr key={job.id}>
            <Table.Td>
              <Anchor component={Link} to="/sweeps" search={{ job: job.id } as never} size="sm" fw={500}>
                {job.name}
              </Anchor>
            </Table.Td>
            <Table.Td>{kind && ONE[kind]}</Table.Td>
            <Table.Td>
              <StateBadge state={job.status} />
            </Table.Td>
            <Table.Td>
              <Done job={job} />
            </Table.Td>
            <Table.Td>{job.user_id}</Table.Td>
            <Table.Td>{job.provider ? `${job.provider} ${job.region ?? ""}` : <span className="dim">–</span>}</Table.Td>
            <Table.Td className="number">{usd(job.cost_usd)}</Table.Td>
            <Table.Td>
              <When at={job.created_at} />
            </Table.Td>
          </Table.Tr>
        );
      })}
    </Rows>
  );
}

function Done({ job }: { job: Brief }) {
  if (job.progress === null) return <span className="dim">–</span>;
  return (
    <Group gap={6} wrap="nowrap">
      <Progress value={job.progress * 100} w={72} size="sm" aria-label={`${job.name}: ${percent(job.progress)} done`} />
      <Text size="xs" className="number">
        {percent(job.progress)}
      </Text>
    </Group>
  );
}
