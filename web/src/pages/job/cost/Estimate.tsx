/** What was expected, beside what came of it; and what is still to come. */
import { Table } from "@mantine/core";
import { Panel } from "@/parts/Panel";
import { duration, usd } from "@/parts/words";
import type { Costs } from "@/pages/job/cost/CostTab";
import type { Job } from "@/pages/job/queries";
import { Told } from "@/pages/job/Told";

const HOUR_S = 3600;

export function Estimate({ job, costs }: { job: Job; costs: Costs }) {
  const { prediction } = job;
  const { remaining } = costs;
  const hours = (value: number | null) => duration(value === null ? null : value * HOUR_S);
  const units = [
    ["per step", "per_step_usd", costs.per_step_usd],
    ["per sample", "per_sample_usd", costs.per_sample_usd],
    ["per token", "per_token_usd", costs.per_token_usd],
  ] as const;
  return (
    <Panel title="Expected and actual">
      <Table.ScrollContainer minWidth={380} tabIndex={0} aria-label="expected and actual">
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th />
              <Table.Th className="number">cost</Table.Th>
              <Table.Th className="number">time</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            <Line
              words="estimated"
              cost={prediction?.estimated_cost_usd ?? job.cost.estimated_usd}
              time={hours(prediction?.estimated_hours ?? null)}
            />
            {prediction && (
              <Line
                words="nine of ten times at most"
                cost={prediction.estimated_cost_high_usd}
                time={hours(prediction.estimated_hours_high)}
              />
            )}
            {prediction && (
              <Line
                words={`actual, while ranks ran${goal(prediction.is_within_goal)}`}
                cost={prediction.actual_cost_usd}
                time={hours(prediction.actual_hours)}
              />
            )}
            {remaining && (
              <Table.Tr>
                <Table.Td>still to come ({remaining.basis === "plan" ? "by the plan" : "by its progress"})</Table.Td>
                <Table.Td className="number">
                  <Told of="costs" name="remaining.likely_usd" value={remaining.likely_usd}>
                    {usd(remaining.likely_usd)}
                  </Told>{" "}
                  to{" "}
                  <Told of="costs" name="remaining.high_usd" value={remaining.high_usd}>
                    {usd(remaining.high_usd)}
                  </Told>
                </Table.Td>
                <Table.Td className="number">
                  {hours(remaining.hours)} to {hours(remaining.hours_high)}
                </Table.Td>
              </Table.Tr>
            )}
            {costs.budget_usd !== null && (
              <Table.Tr>
                <Table.Td>budget</Table.Td>
                <Table.Td className="number">
                  <Told of="costs" name="budget_usd" value={costs.budget_usd}>
                    {usd(costs.budget_usd)}
                  </Told>
                </Table.Td>
                <Table.Td />
              </Table.Tr>
            )}
            {units.map(
              ([words, name, value]) =>
                value !== null && (
                  <Table.Tr key={name}>
                    <Table.Td>{words}</Table.Td>
                    <Table.Td className="number">
                      <Told of="costs" name={name} value={value}>
                        {usd(value)}
                      </Told>
                    </Table.Td>
                    <Table.Td />
                  </Table.Tr>
                ),
            )}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Panel>
  );
}

function Line({ words, cost, time }: { words: string; cost: number | null; time: string }) {
  return (
    <Table.Tr>
      <Table.Td>{words}</Table.Td>
      <Table.Td className="number">{usd(cost)}</Table.Td>
      <Table.Td className="number">{time}</Table.Td>
    </Table.Tr>
  );
}

function goal(isWithin: boolean | null): string {
  if (isWithin === null) return "";
  return isWithin ? " (within 15 % of the estimate)" : " (more than 15 % off)";
}
