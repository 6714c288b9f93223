/** What the money was for: kinds of things that were bought, and time in which nothing ran. */
import { SimpleGrid, Table, Text } from "@mantine/core";
import { Panel } from "@/parts/Panel";
import { Told } from "@/parts/Told";
import { rate, usd } from "@/parts/words";
import type { Costs } from "@/pages/job/cost/CostTab";
import { IDLE, KINDS } from "@/pages/job/cost/parts";

export function Shares({ costs }: { costs: Costs }) {
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="sm">
      <Panel title="What was paid for">
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>kind</Table.Th>
              <Table.Th className="number">so far</Table.Th>
              <Table.Th className="number">per hour now</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {costs.by_kind.map((one, at) => (
              <Table.Tr key={one.kind}>
                <Table.Td>{KINDS[one.kind] ?? one.kind}</Table.Td>
                <Table.Td className="number">
                  <Told at={`by_kind.${at}.so_far_usd`} value={one.so_far_usd} write={usd} />
                </Table.Td>
                <Table.Td className="number">
                  <Told at={`by_kind.${at}.per_hour_usd`} value={one.per_hour_usd} write={rate} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
        {costs.by_kind.length === 0 && <Nothing />}
      </Panel>
      <Panel title="Paid while nothing ran">
        <Table>
          <Table.Tbody>
            {costs.idle_by.map((one, at) => (
              <Table.Tr key={one.use}>
                <Table.Td>{IDLE[one.use] ?? one.use}</Table.Td>
                <Table.Td className="number">
                  <Told at={`idle_by.${at}.amount_usd`} value={one.amount_usd} write={usd} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
        {costs.idle_by.length === 0 && <Nothing />}
      </Panel>
    </SimpleGrid>
  );
}

function Nothing() {
  return (
    <Text size="sm" className="dim">
      nothing
    </Text>
  );
}
