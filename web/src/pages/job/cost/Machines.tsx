import { Badge, Table } from "@mantine/core";
import { Panel } from "@/parts/Panel";
import { Told } from "@/parts/Told";
import { When } from "@/parts/When";
import { rate, usd } from "@/parts/words";
import type { Costs } from "@/pages/job/cost/CostTab";
import { Place } from "@/pages/job/history/Target";

export function Machines({ costs }: { costs: Costs }) {
  if (costs.machines.length === 0) return null;
  return (
    <Panel title="Machines">
      <Table.ScrollContainer minWidth={720} mah={420} tabIndex={0} aria-label="machines">
        <Table stickyHeader>
          <Table.Thead>
            <Table.Tr>
              {["machine", "where", "charged from", "until"].map((name) => (
                <Table.Th key={name}>{name}</Table.Th>
              ))}
              <Table.Th className="number">so far</Table.Th>
              <Table.Th className="number">per hour now</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {costs.machines.map((one, at) => (
              <Table.Tr key={one.machine_id}>
                <Table.Td className="mono">{one.machine_id}</Table.Td>
                <Table.Td>
                  <Place of={one} at={`machines.${at}`} />
                </Table.Td>
                <Table.Td>
                  <When at={one.started_at} exact />
                </Table.Td>
                <Table.Td>
                  {one.ended_at ? <When at={one.ended_at} exact /> : "it runs"}
                  {one.is_estimate && (
                    <Badge ml={6} variant="light" color="orange" tt="none">
                      estimate
                    </Badge>
                  )}
                </Table.Td>
                <Table.Td className="number">
                  <Told at={`machines.${at}.so_far_usd`} value={one.so_far_usd} write={usd} />
                </Table.Td>
                <Table.Td className="number">
                  <Told at={`machines.${at}.per_hour_usd`} value={one.per_hour_usd} write={rate} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Panel>
  );
}
