/** What each step of a workflow would run on, and what all of them come to. */
import { Stack, Table, Text } from "@mantine/core";
import { gpusOf, hoursOf, placeOf, type Plan } from "@/pages/submit/plan-rows";
import { duration, percent, plural, usd } from "@/parts/words";

export function WorkflowTable({ plan }: { plan: Plan }) {
  const steps = plan.steps ?? [];
  return (
    <Stack gap="xs">
      <Table.ScrollContainer minWidth={640} scrollAreaProps={{ viewportProps: { tabIndex: 0, "aria-label": "steps" } }}>
        <Table verticalSpacing={5} fz="sm">
          <Table.Thead>
            <Table.Tr>
              {["step", "provider/region", "instance", "GPUs", "hours", "total", "why"].map((name) => (
                <Table.Th key={name} scope="col">
                  {name}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {steps.map((step) => {
              const one = step.runnable ?? step.chosen;
              return (
                <Table.Tr key={step.name}>
                  <Table.Td>{step.name}</Table.Td>
                  <Table.Td>{one ? placeOf(one) : "–"}</Table.Td>
                  <Table.Td>{one ? `${one.count} × ${one.instance_type}` : "–"}</Table.Td>
                  <Table.Td>{one ? gpusOf(one) : "–"}</Table.Td>
                  <Table.Td>{hoursOf(one?.estimated_hours)}</Table.Td>
                  <Table.Td>{usd(one?.estimated_cost_usd)}</Table.Td>
                  <Table.Td>{one ? one.why : (step.reason ?? "nothing fits")}</Table.Td>
                </Table.Tr>
              );
            })}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      <Text size="sm">{[plural(steps.length, "step"), ...together(plan)].join(" · ")}</Text>
      {plan.reason && <Text size="sm">Nothing keeps the limits of all steps: {plan.reason}</Text>}
      {totalOf(plan)?.carried.map((one) => (
        <Text key={`${one.step} ${one.to}`} size="sm" className="dim">
          data: {Number(one.size_gb.toPrecision(3))} GB of {one.step} go from {one.from} to {one.to},{" "}
          {usd(one.cost_usd)}, {duration(one.hours * 3600)}
        </Text>
      ))}
    </Stack>
  );
}

function totalOf(plan: Plan) {
  return plan.runnable_total ?? plan.total;
}

function together(plan: Plan): string[] {
  const total = totalOf(plan);
  if (!total) return [];
  const cost =
    total.estimated_cost_usd === null ? "nobody knows what they cost" : `total ${usd(total.estimated_cost_usd)}`;
  const hours = total.estimated_hours === null ? [] : [`done after ${hoursOf(total.estimated_hours)} h`];
  return [cost, ...hours, `at most ${percent(total.bound)} from the optimum`];
}
