/** What everything in the Lab came to, by the seller's rules: in all, by kind, and line by line. */
import { Group, Table, Text } from "@mantine/core";
import { Command } from "@/parts/Command";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { duration, plural } from "@/parts/words";
import { micro, secondsBetween } from "@/pages/lab/words";
import { useBill } from "@/pages/lab/queries";

const COLUMNS = ["What", "Kind", "From", { title: "For", isNumber: true }, { title: "Cost", isNumber: true }, "Note"];

export function Bill() {
  const query = useBill();
  return (
    <Panel title="Bill" aside={<Command line="crucible lab bill" />}>
      <Loaded query={query}>
        {(bill) => (
          <>
            <Group gap="lg">
              <Text fw={600}>{micro(bill.cost_microusd)} in all</Text>
              {bill.kinds.map((one) => (
                <Text key={one.kind} size="sm" className="dim">
                  {plural(one.count, one.kind, one.kind === "address" ? "addresses" : undefined)}:{" "}
                  {micro(one.cost_microusd)}
                </Text>
              ))}
            </Group>
            {bill.items.length > 0 && (
              <Rows label="Lines of the bill" columns={COLUMNS} minWidth={640} maxHeight={360}>
                {bill.items.map((line) => (
                  <Table.Tr key={`${line.kind} ${line.resource} ${line.from_at}`}>
                    <Table.Td className="mono">{line.resource}</Table.Td>
                    <Table.Td>{line.kind}</Table.Td>
                    <Table.Td>
                      <time dateTime={line.from_at}>{line.from_at.slice(5, 19).replace("T", " ")}</time>
                    </Table.Td>
                    <Table.Td className="number">{duration(secondsBetween(line.from_at, line.to_at))}</Table.Td>
                    <Table.Td className="number">{micro(line.cost_microusd)}</Table.Td>
                    <Table.Td className="dim">{line.note}</Table.Td>
                  </Table.Tr>
                ))}
              </Rows>
            )}
            {bill.is_cut && (
              <Text size="xs" className="dim">
                Only the newest lines are shown; crucible lab bill has them all.
              </Text>
            )}
          </>
        )}
      </Loaded>
    </Panel>
  );
}
