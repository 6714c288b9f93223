/** A new server: how to submit the first job. */
import { Stack, Text } from "@mantine/core";
import { Command } from "@/parts/Command";
import { Panel } from "@/parts/Panel";

export function First() {
  return (
    <Panel title="Submit your first job">
      <Stack gap="xs">
        <Text size="sm">A job file to start from, its plan and price, and then the job itself:</Text>
        <Command line="crucible spec example > job.yaml" />
        <Command line="crucible plan job.yaml" />
        <Command line="crucible submit job.yaml" />
        <Text size="sm">No GPU and no cloud at hand? The Lab is a cloud on this computer that costs nothing:</Text>
        <Command line="crucible lab up" />
      </Stack>
    </Panel>
  );
}
