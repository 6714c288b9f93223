/** The best trial: what it was given, what it came to, and how to go on with it. */
import { Badge, Code, Group, Text } from "@mantine/core";
import { Command } from "@/parts/Command";
import { Panel } from "@/parts/Panel";
import { figure } from "@/pages/sweeps/axis";
import { paramOf } from "@/pages/sweeps/trials";
import type { JobView } from "@/pages/sweeps/queries";
import type { Shape } from "@/api/client";

interface Props {
  job: JobView;
  sweep: Shape<"SweepView">;
  best: Shape<"BestTrial">;
}

export function BestTrial({ job, sweep, best }: Props) {
  return (
    <Panel title="Best trial" aside={<Command line={`crucible sweep best ${job.id} --env`} />}>
      <Group gap="xs">
        <Badge size="lg" variant="filled" tt="none">
          trial {best.index}
        </Badge>
        <Text fw={600}>
          {sweep.objective?.metric ?? "value"} {figure(best.value)}
        </Text>
        {sweep.parameters.map((name) => {
          const value = paramOf(best, name);
          return (
            <Code key={name} fz="sm">
              {name}={typeof value === "number" ? figure(value) : String(value)}
            </Code>
          );
        })}
      </Group>
      {best.checkpoint && (
        <Group gap="xs">
          <Text size="sm" className="dim">
            Its checkpoint of step {best.checkpoint.step}:
          </Text>
          <Command line={`crucible checkpoints get ${job.id} --task ${best.index}`} />
        </Group>
      )}
    </Panel>
  );
}
