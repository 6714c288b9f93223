/** Ways to run the job, the choice ticked. */
import { Badge, Table } from "@mantine/core";
import { CheckIcon } from "@/parts/icons";
import type { PlanRow } from "@/pages/submit/plan-rows";

const FIGURES = ["$/h", "start", "hours", "total p50–p90", "risk"];

export function PlanTable({ rows }: { rows: PlanRow[] }) {
  const isMixed = new Set(rows.map((row) => row.isEnabled)).size > 1;
  return (
    <Table.ScrollContainer
      minWidth={900}
      scrollAreaProps={{ viewportProps: { tabIndex: 0, "aria-label": "ways to run the job" } }}
    >
      <Table verticalSpacing={5} horizontalSpacing="xs" highlightOnHover fz="sm" style={{ whiteSpace: "nowrap" }}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">#</Table.Th>
            {["provider/region", "instance", "GPUs", "market"].map((name) => (
              <Table.Th key={name} scope="col">
                {name}
              </Table.Th>
            ))}
            {FIGURES.map((name) => (
              <Table.Th key={name} scope="col" className="number">
                {name}
              </Table.Th>
            ))}
            <Table.Th scope="col">why</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {numbered(rows).map(([row, number]) => (
            <Row key={row.id} row={row} number={number} isMixed={isMixed} />
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

/** Parts of a way have no number of their own. */
function numbered(rows: PlanRow[]): [PlanRow, number][] {
  let number = 0;
  return rows.map((row) => [row, row.isPart ? 0 : ++number]);
}

function Row({ row, number, isMixed }: { row: PlanRow; number: number; isMixed: boolean }) {
  return (
    <Table.Tr
      fw={row.isTicked ? 600 : undefined}
      className={row.isPart ? "dim" : undefined}
      aria-selected={row.isTicked || undefined}
    >
      <Table.Td>{row.isTicked ? <Tick /> : number || ""}</Table.Td>
      <Table.Td pl={row.isPart ? "lg" : undefined}>{row.where}</Table.Td>
      <Table.Td>{row.machines}</Table.Td>
      <Table.Td>{row.gpus}</Table.Td>
      <Table.Td>{row.market}</Table.Td>
      {[row.perHour, row.start, row.hours, row.total, row.risk].map((figure, at) => (
        <Table.Td key={at} className="number">
          {figure}
        </Table.Td>
      ))}
      <Table.Td style={{ whiteSpace: "normal", minWidth: 130 }}>
        {row.why}{" "}
        {isMixed && !row.isEnabled && !row.isPart && (
          <Badge variant="default" size="sm" tt="none">
            not enabled
          </Badge>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

function Tick() {
  return (
    <span role="img" aria-label="the choice" style={{ color: "var(--good)" }}>
      <CheckIcon />
    </span>
  );
}
