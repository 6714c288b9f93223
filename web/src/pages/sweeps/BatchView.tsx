/** A batch: how far it is, how fast it goes, and its shards. */
import { Code, Progress, SimpleGrid, Stack, Table, Text } from "@mantine/core";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { Figure } from "@/parts/Figure";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { StateBadge } from "@/parts/StateBadge";
import { When } from "@/parts/When";
import { bytes, count, duration, percent, usd } from "@/parts/words";
import { useShards, type JobView } from "@/pages/sweeps/queries";
import type { Shape } from "@/api/client";

const COLUMNS = [
  { title: "Shard", isNumber: true },
  "State",
  { title: "First item", isNumber: true },
  { title: "Items", isNumber: true },
  { title: "Failed", isNumber: true },
  { title: "Retries", isNumber: true },
  { title: "Took", isNumber: true },
  { title: "Output", isNumber: true },
  "Done",
];

export function BatchView({ job }: { job: JobView }) {
  const query = useShards(job);
  if (job.shards === null)
    return <Empty title="This job goes through no list of items" command={`crucible describe ${job.id}`} />;
  return (
    <Loaded query={query} lines={8}>
      {(page) => (
        <Stack gap="md">
          <Counts counts={page.counts} />
          <Panel title="Shards" aside={<Command line={`crucible results ${job.id}`} />}>
            <Rows label="Shards" columns={COLUMNS} minWidth={720} maxHeight={520}>
              {page.items.map((shard) => (
                <Table.Tr key={shard.number}>
                  <Table.Td className="number">{shard.number}</Table.Td>
                  <Table.Td>
                    <StateBadge state={shard.state === "done" ? "completed" : shard.state} />
                  </Table.Td>
                  <Table.Td className="number">{count(shard.first)}</Table.Td>
                  <Table.Td className="number">{count(shard.items)}</Table.Td>
                  <Table.Td className="number">{count(shard.failed)}</Table.Td>
                  <Table.Td className="number">{count(shard.tries)}</Table.Td>
                  <Table.Td className="number">{duration(shard.seconds)}</Table.Td>
                  <Table.Td className="number">{bytes(shard.size_bytes)}</Table.Td>
                  <Table.Td>
                    <When at={shard.done_at} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Rows>
            {page.next_after !== null && (
              <Text size="xs" className="dim">
                The first {count(page.items.length)} of {count(page.counts.shards)} shards.
              </Text>
            )}
          </Panel>
        </Stack>
      )}
    </Loaded>
  );
}

function Counts({ counts }: { counts: Shape<"ShardCounts"> }) {
  return (
    <>
      <SimpleGrid cols={{ base: 2, md: 4 }}>
        <Figure
          label="Items done"
          value={`${count(counts.items_done)} of ${count(counts.items)}`}
          note={counts.items_failed ? `${count(counts.items_failed)} failed` : "none failed"}
        />
        <Figure
          label="Shards"
          value={`${count(counts.done)} of ${count(counts.shards)}`}
          note={`${count(counts.leased)} in work, ${count(counts.waiting)} wait`}
        />
        <Figure
          label="Speed"
          value={counts.items_per_s === null ? "–" : `${Number(counts.items_per_s.toPrecision(3))}/s`}
          note={counts.eta_s === null ? undefined : `${duration(counts.eta_s)} to go`}
        />
        <Figure
          label="Cost of an item"
          value={usd(counts.usd_per_item)}
          note={`${bytes(counts.output_bytes)} written`}
        />
      </SimpleGrid>
      <Progress value={counts.fraction * 100} aria-label={`${percent(counts.fraction)} of the items are done`} />
      {counts.first_error && (
        <Text size="sm">
          The first item that failed: <Code>{counts.first_error}</Code>
        </Text>
      )}
    </>
  );
}
