/** What was saved, which the ledger knows, and apart from it what could be, which is estimated. They are never added up. */
import { Grid, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Shape } from "@/api/client";
import { Ideas } from "@/pages/costs/Ideas";
import { commandOf, type Asked } from "@/pages/costs/asked";
import { savingsQuery } from "@/pages/costs/queries";
import { Command } from "@/parts/Command";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Told } from "@/parts/Told";
import { usd } from "@/parts/words";

export function Savings({ asked }: { asked: Asked }) {
  const asking = savingsQuery(asked);
  const query = useQuery(asking);
  return (
    <Grid>
      <Grid.Col span={{ base: 12, lg: 5 }}>
        <Panel title="Saved" aside={<Command line={commandOf("savings", "market", asked)} />}>
          <Text size="sm" className="dim">
            Against the price on demand of the same machines when they were bought.
          </Text>
          <Loaded query={query}>{(report) => <Realised report={report} answer={asking.answer} />}</Loaded>
        </Panel>
      </Grid.Col>
      <Grid.Col span={{ base: 12, lg: 7 }}>
        <Panel title="Could be saved">
          <Text size="sm" className="dim">
            The planner’s estimates for what runs or waits now, whatever the period. Of one job take one.
          </Text>
          <Loaded query={query}>
            {({ available }) => available && <Ideas available={available} answer={asking.answer} />}
          </Loaded>
        </Panel>
      </Grid.Col>
    </Grid>
  );
}

type Sums = Shape<"Sums">;

function Realised({ report, answer }: { report: Shape<"SavingsReport">; answer: string }) {
  return (
    <Table.ScrollContainer minWidth={320} tabIndex={0} role="region" aria-label="saved" data-answer={answer}>
      <Table verticalSpacing={6}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">market</Table.Th>
            {["Paid", "Saved", "Not compared"].map((column) => (
              <Table.Th key={column} scope="col" className="number">
                {column}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {report.rows.map((row, at) => (
            <Table.Tr key={row.key["market"]}>
              <Table.Td>{row.key["market"]?.replace("_", " ")}</Table.Td>
              <Cells sums={row} at={`rows.${at}`} />
            </Table.Tr>
          ))}
        </Table.Tbody>
        <Table.Tfoot>
          <Table.Tr>
            <Table.Th scope="row">total</Table.Th>
            <Cells sums={report.total} at="total" />
          </Table.Tr>
        </Table.Tfoot>
      </Table>
    </Table.ScrollContainer>
  );
}

function Cells({ sums, at }: { sums: Sums; at: string }) {
  return (["cost_usd", "saved_usd", "unpriced_usd"] as const).map((name) => (
    <Table.Td key={name} className="number">
      <Told at={`${at}.${name}`} value={sums[name]} write={usd} />
    </Table.Td>
  ));
}
