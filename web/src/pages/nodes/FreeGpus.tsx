/** Where GPUs are counted, how many are free: this computer, own hosts, Slurm. */
import { Group, Progress, SimpleGrid, Stack, Text } from "@mantine/core";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { useCapacity, type Pool } from "@/pages/nodes/queries";

export function FreeGpus() {
  const query = useCapacity();
  return (
    <Panel title="Free GPUs" aside={<Command line="crucible nodes --free" />}>
      <Loaded query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No GPUs of your own" command="crucible hosts add --help">
              This computer has none that were found, and there are no own hosts or Slurm clusters. Clouds sell as many
              as they have.
            </Empty>
          ) : (
            <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }}>
              {items.map((pool) => (
                <PoolBar key={`${pool.provider} ${pool.region} ${pool.zone} ${pool.gpu}`} pool={pool} />
              ))}
            </SimpleGrid>
          )
        }
      </Loaded>
    </Panel>
  );
}

function PoolBar({ pool }: { pool: Pool }) {
  const place = [pool.provider, pool.region !== pool.provider && pool.region, pool.zone].filter(Boolean).join(" ");
  const words = `${pool.free} of ${pool.gpus} free`;
  return (
    <Stack gap={4}>
      <Group justify="space-between" gap="xs">
        <Text size="sm" fw={600}>
          {pool.gpu}{" "}
          <Text span size="xs" className="dim">
            {place}
          </Text>
        </Text>
        <Text size="sm" className="number">
          {words}
        </Text>
      </Group>
      <Progress
        value={pool.gpus === 0 ? 0 : ((pool.gpus - pool.free) / pool.gpus) * 100}
        size="lg"
        aria-label={`${pool.gpu} in ${place}: ${words}`}
      />
    </Stack>
  );
}
