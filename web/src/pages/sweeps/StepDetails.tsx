/** One step of a workflow: what it needs and gives, where it ran, and the job that did it. */
import { Anchor, Group, Table, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Command } from "@/parts/Command";
import { Panel } from "@/parts/Panel";
import { StateBadge } from "@/parts/StateBadge";
import { usd } from "@/parts/words";
import { tookOf } from "@/pages/sweeps/StepGraph";
import { outcome } from "@/pages/sweeps/trials";
import type { Step } from "@/pages/sweeps/queries";

export function StepDetails({ workflow, step }: { workflow: string; step: Step }) {
  const facts: [string, React.ReactNode][] = [
    ["State", <StateBadge key="state" state={outcome(step)} />],
    ["Needs", `${step.needs.join(", ") || "nothing"}${step.when === "succeeded" ? "" : ` (${step.when})`}`],
    [
      "Inputs",
      Object.entries(step.inputs)
        .map(([name, from]) => `${name} from ${from}`)
        .join(", ") || "none",
    ],
    ["Outputs", step.outputs ?? "none"],
    ["Where", step.provider ? `${step.provider} ${step.region ?? ""}` : "–"],
    ["Took", tookOf(step)],
    ["Cost", usd(step.cost_usd)],
    ["Reason", step.reason ?? "–"],
  ];
  return (
    <Panel title={step.name} aside={step.job_id && <Command line={`crucible logs ${workflow} --step ${step.name}`} />}>
      <Table withRowBorders={false} verticalSpacing={4} layout="fixed" aria-label={`facts of ${step.name}`}>
        <Table.Tbody>
          {facts.map(([name, value]) => (
            <Table.Tr key={name}>
              <Table.Th scope="row" w={90} fw={500} className="dim">
                {name}
              </Table.Th>
              <Table.Td style={{ overflowWrap: "anywhere" }}>{value}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      <Group>
        {step.job_id === null ? (
          <Text size="sm" className="dim">
            It has no job yet.
          </Text>
        ) : (
          <Anchor component={Link} to={`/jobs/${step.job_id}`} size="sm">
            its logs, metrics and costs
          </Anchor>
        )}
      </Group>
    </Panel>
  );
}
