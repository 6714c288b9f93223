/** Every model on every dataset: a table for each metric, with what is better and worse than the baseline. */
import { Stack, Table, Text } from "@mantine/core";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { StateBadge } from "@/parts/StateBadge";
import { figure } from "@/pages/sweeps/axis";
import { useEvaluation, type JobView } from "@/pages/sweeps/queries";
import type { Shape } from "@/api/client";

type Evaluation = Shape<"EvaluationView">;
type Told = { value: number; delta: number | null; is_better: boolean | null };

export function EvaluationView({ job }: { job: JobView }) {
  const query = useEvaluation(job.id);
  return (
    <Loaded query={query} lines={6}>
      {(found) => (
        <Stack gap="md">
          <Text size="sm" className="dim">
            {found.goal === "maximize" ? "More" : "Less"} is better
            {found.baseline && `; each figure beside that of ${found.baseline}`}.
          </Text>
          {found.metrics.map((metric) => (
            <MetricTable key={metric} found={found} metric={metric} />
          ))}
          {found.metrics.length === 0 && <Text size="sm">No figure was reported yet.</Text>}
          {found.next_cursor !== null && (
            <Text size="sm" className="dim">
              There are more models: crucible eval show {job.id}
            </Text>
          )}
        </Stack>
      )}
    </Loaded>
  );
}

function MetricTable({ found, metric }: { found: Evaluation; metric: string }) {
  const columns = ["Model", ...found.datasets, "Mean"].map((title, at) => ({ title, isNumber: at > 0 }));
  return (
    <Panel title={metric}>
      <Rows label={`${metric} of every model on every dataset`} columns={columns} minWidth={200 + 130 * columns.length}>
        {found.rows.map((row) => (
          <Table.Tr key={row.model}>
            <Table.Th scope="row" fw={row.model === found.baseline ? 400 : 600}>
              {row.model}
              {row.model === found.baseline && <span className="dim"> (baseline)</span>}
            </Table.Th>
            {row.cells.map((cell) => (
              <Table.Td key={cell.dataset} className="number">
                {cell.metrics[metric] ? <Cell told={cell.metrics[metric]} /> : <StateBadge state={cell.phase} />}
              </Table.Td>
            ))}
            <Table.Td className="number">{row.means[metric] ? <Cell told={row.means[metric]} /> : "–"}</Table.Td>
          </Table.Tr>
        ))}
      </Rows>
    </Panel>
  );
}

function Cell({ told }: { told: Told }) {
  const { value, delta, is_better } = told;
  const ink = is_better === null ? "var(--dim)" : is_better ? "var(--good)" : "var(--bad)";
  return (
    <>
      {figure(value)}
      {delta !== null && delta !== 0 && (
        <span style={{ color: ink, marginLeft: 6 }}>
          {delta > 0 ? "+" : ""}
          {figure(delta)}
          {is_better === false && <span className="only-heard"> worse</span>}
        </span>
      )}
    </>
  );
}
