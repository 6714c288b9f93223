/** Each region of the Lab: what runs there, and what its cheapest GPUs cost now. */
import { Group, Paper, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import { Loaded } from "@/parts/Loaded";
import { plural, rate } from "@/parts/words";
import { usePricesIn, type LabView } from "@/pages/lab/queries";

export function Regions({ lab }: { lab: LabView }) {
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, lg: Math.min(4, lab.regions.length) }} component="section" aria-label="Regions">
      {lab.regions.map((region) => (
        <Region key={region} region={region} lab={lab} />
      ))}
    </SimpleGrid>
  );
}

function Region({ region, lab }: { region: string; lab: LabView }) {
  const query = usePricesIn(region);
  const alive = lab.machines.filter((one) => one.region === region && one.state !== "terminated");
  return (
    <Paper withBorder p="sm" component="article" aria-label={region}>
      <Stack gap={6}>
        <Group justify="space-between">
          <Title order={3} fz="sm">
            {region}
          </Title>
          <Text size="xs" className="dim">
            {plural(alive.length, "machine")}
          </Text>
        </Group>
        <Loaded query={query}>
          {({ groups }) => (
            <Stack gap={2}>
              {groups.slice(0, 4).map(({ name, best }) => (
                <Group key={name} justify="space-between" gap="xs" wrap="nowrap">
                  <Text size="sm" truncate>
                    {best.gpus} × {name}{" "}
                    <Text span className="dim" size="xs">
                      {best.instance_type}, {best.market.replace("_", " ")}
                    </Text>
                  </Text>
                  <Text size="sm" className="number">
                    {rate(best.price_per_hour_usd)}
                  </Text>
                </Group>
              ))}
              {groups.length === 0 && (
                <Text size="sm" className="dim">
                  no prices yet; crucible prices refresh
                </Text>
              )}
            </Stack>
          )}
        </Loaded>
      </Stack>
    </Paper>
  );
}
