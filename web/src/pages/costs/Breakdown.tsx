/** The rows of a report, the dearest first. They add up to the total below them, and that to the ledger. */
import { Anchor, Table, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { narrowedTo, type Asked, type Search } from "@/pages/costs/asked";
import type { CostReport } from "@/pages/costs/queries";
import { Told } from "@/parts/Told";
import { count, usd } from "@/parts/words";
import classes from "@/pages/costs/Breakdown.module.css";

type Sums = CostReport["total"];

const COLUMNS = ["Cost", "Useful", "Idle", "Saved", "GPU hours", "Jobs"];

export function Breakdown({ report, answer, asked }: { report: CostReport; answer: string; asked: Asked }) {
  const dearest = Math.max(...report.rows.map((row) => row.cost_microusd), 1);
  const name = asked.by.replace("_", " ");
  return (
    <div data-answer={answer}>
      <Table.ScrollContainer minWidth={640} tabIndex={0} role="region" aria-label={`costs by ${name}`}>
        <Table highlightOnHover verticalSpacing={6}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">{name}</Table.Th>
              {COLUMNS.map((column) => (
                <Table.Th key={column} scope="col" className="number">
                  {column}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {report.rows.map((row, at) => (
              <Table.Tr key={Object.values(row.key).join()}>
                <Table.Td className={classes.name}>
                  <Name row={row} at={at} asked={asked} />
                  <i
                    className={classes.share}
                    style={{ width: `${Math.max(0, (row.cost_microusd / dearest) * 100)}%` }}
                  />
                </Table.Td>
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
      {report.left_out > 0 && (
        <Text size="sm" className="dim">
          <Told at="left_out" value={report.left_out} write={count} /> more in the total; the CSV has all of them.
        </Text>
      )}
    </div>
  );
}

function Cells({ sums, at }: { sums: Sums; at: string }) {
  const told = (name: keyof Sums, write: typeof usd) => (
    <Table.Td className="number">
      <Told at={`${at}.${name}`} value={sums[name]} write={write} />
    </Table.Td>
  );
  return (
    <>
      {told("cost_usd", usd)}
      {told("useful_usd", usd)}
      {told("idle_usd", usd)}
      {told("saved_usd", usd)}
      {told("gpu_hours", count)}
      {told("jobs", count)}
    </>
  );
}

/** Leads to what the row is made of; a job to its own page. */
function Name({ row, at, asked }: { row: CostReport["rows"][number]; at: number; asked: Asked }) {
  const value = row.key[asked.by] ?? "";
  if (asked.by === "job")
    return (
      <Anchor component={Link} to={`/jobs/${value}`} size="sm">
        <Told at={`rows.${at}.${row.job_name ? "job_name" : "key.job"}`} value={row.job_name ?? value} />
      </Anchor>
    );
  const within = narrowedTo(value, asked);
  return (
    <Anchor
      size="sm"
      renderRoot={(props) => <Link to="/costs" search={(now: Search) => ({ ...now, ...within })} {...props} />}
    >
      {value === "-" ? `no ${asked.by.replace("_", " ")}` : <Told at={`rows.${at}.key.${asked.by}`} value={value} />}
    </Anchor>
  );
}
