/** A workflow as a graph of its steps, and as a table. */
import { SimpleGrid, Stack, Text } from "@mantine/core";
import { Figure } from "@/parts/Figure";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { When } from "@/parts/When";
import { useAddress } from "@/parts/address";
import { duration, usd } from "@/parts/words";
import { StepDetails } from "@/pages/sweeps/StepDetails";
import { StepGraph } from "@/pages/sweeps/StepGraph";
import { useWorkflow, type JobView } from "@/pages/sweeps/queries";
import type { Shape } from "@/api/client";

export function WorkflowView({ job }: { job: JobView }) {
  const query = useWorkflow(job.id);
  const [search, change] = useAddress();
  return (
    <Loaded query={query} lines={8}>
      {(workflow) => {
        const chosen = workflow.steps.find((step) => step.name === search["step"]);
        return (
          <Stack gap="md">
            <Counts workflow={workflow} />
            {workflow.reason && <Text size="sm">{workflow.reason}</Text>}
            <Panel title="Steps">
              <StepGraph
                steps={workflow.steps}
                chosen={chosen?.name}
                onChoose={(name) => change({ step: name === chosen?.name ? undefined : name })}
              />
            </Panel>
            {chosen && <StepDetails workflow={job.id} step={chosen} />}
          </Stack>
        );
      }}
    </Loaded>
  );
}

function Counts({ workflow }: { workflow: Shape<"Workflow"> }) {
  const { steps, started_at, finished_at } = workflow;
  const ended = steps.filter((step) => ["succeeded", "failed", "cancelled"].includes(step.phase));
  const failed = steps.filter((step) => step.phase === "failed").length;
  const took = started_at && finished_at ? (Date.parse(finished_at) - Date.parse(started_at)) / 1000 : null;
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }}>
      <Figure
        label="Steps ended"
        value={`${ended.length} of ${steps.length}`}
        note={failed ? `${failed} failed` : "none failed"}
      />
      <Figure label="Cost so far" value={usd(workflow.cost_usd)} />
      <Figure label="Began" value={<When at={started_at} />} />
      <Figure
        label="Took"
        value={took === null ? "–" : duration(took)}
        note={took === null ? "not over yet" : undefined}
      />
    </SimpleGrid>
  );
}
