/** A picture and the table behind it: whoever cannot see the one reads the other, and anybody may copy it. */
import { Button, Group, Table } from "@mantine/core";
import { useState, type ReactNode } from "react";

export interface Behind {
  columns: string[];
  rows: ReactNode[][];
}

export function Charted({ label, behind, children }: { label: string; behind: Behind; children: ReactNode }) {
  const [isTable, setIsTable] = useState(false);
  return (
    <figure aria-label={label} style={{ margin: 0, minWidth: 0 }}>
      {isTable ? <BehindTable label={label} behind={behind} /> : children}
      <Group justify="flex-end" mt={4}>
        <Button size="compact-xs" variant="subtle" aria-pressed={isTable} onClick={() => setIsTable(!isTable)}>
          {isTable ? "show the chart" : "show as a table"}
        </Button>
      </Group>
    </figure>
  );
}

const MOST_ROWS = 500;

function BehindTable({ label, behind }: { label: string; behind: Behind }) {
  const shown = behind.rows.slice(0, MOST_ROWS);
  return (
    <Table.ScrollContainer minWidth={300} mah={360} tabIndex={0} role="region" aria-label={label}>
      <Table stickyHeader>
        <Table.Caption>
          {label}
          {shown.length < behind.rows.length && `: the first ${MOST_ROWS} of ${behind.rows.length} rows`}
        </Table.Caption>
        <Table.Thead>
          <Table.Tr>
            {behind.columns.map((column) => (
              <Table.Th key={column} scope="col">
                {column}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {shown.map((row, at) => (
            <Table.Tr key={at}>
              {row.map((cell, column) => (
                <Table.Td key={column}>{cell}</Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
