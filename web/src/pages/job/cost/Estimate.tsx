/** What was expected, beside what came of it; and what is still to come. */
import { Table } from "@mantine/core";
import type { ReactNode } from "react";
import { Panel } from "@/parts/Panel";
import { Told } from "@/parts/Told";
import { hours, usd } from "@/parts/words";
import type { Costs } from "@/pages/job/cost/CostTab";
import { answerOf, type Job } from "@/pages/job/queries";

export function Estimate({ job, costs }: { job: Job; costs: Costs }) {
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
              <Table.Th className="number">time of work</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody data-answer={answerOf(job.id)}>
            <Predicted job={job} />
          </Table.Tbody>
          <Table.Tbody>
            <Remaining costs={costs} />
            {costs.budget_usd !== null && (
              <Line words="budget" cost={<Told at="budget_usd" value={costs.budget_usd} write={usd} />} />
            )}
            {units.map(
              ([words, name, value]) =>
                value !== null && <Line key={name} words={words} cost={<Told at={name} value={value} write={usd} />} />,
            )}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Panel>
  );
}

function Predicted({ job: { prediction, cost } }: { job: Job }) {
  if (!prediction)
    return <Line words="estimated" cost={<Told at="cost.estimated_usd" value={cost.estimated_usd} write={usd} />} />;
  const lines = [
    ["estimated", "estimated_cost_usd", "estimated_hours"],
    ["nine of ten times at most", "estimated_cost_high_usd", "estimated_hours_high"],
    [`actual, until it ended${goal(prediction.is_within_goal)}`, "actual_cost_usd", "actual_hours"],
  ] as const;
  return lines.map(([words, dollars, time]) => (
    <Line
      key={dollars}
      words={words}
      cost={<Told at={`prediction.${dollars}`} value={prediction[dollars]} write={usd} />}
      time={<Told at={`prediction.${time}`} value={prediction[time]} write={hours} />}
    />
  ));
}

function Remaining({ costs: { remaining } }: { costs: Costs }) {
  if (!remaining) return null;
  return (
    <Line
      words={`still to come (${remaining.basis === "plan" ? "by the plan" : "by its progress"})`}
      cost={
        <>
          <Told at="remaining.likely_usd" value={remaining.likely_usd} write={usd} /> to{" "}
          <Told at="remaining.high_usd" value={remaining.high_usd} write={usd} />
        </>
      }
      time={
        <>
          <Told at="remaining.hours" value={remaining.hours} write={hours} /> to{" "}
          <Told at="remaining.hours_high" value={remaining.hours_high} write={hours} />
        </>
      }
    />
  );
}

function Line({ words, cost, time }: { words: string; cost: ReactNode; time?: ReactNode }) {
  return (
    <Table.Tr>
      <Table.Td>{words}</Table.Td>
      <Table.Td className="number">{cost}</Table.Td>
      <Table.Td className="number">{time}</Table.Td>
    </Table.Tr>
  );
}

function goal(isWithin: boolean | null): string {
  if (isWithin === null) return "";
  return isWithin ? " (near enough to the estimate)" : " (too far from the estimate)";
}
