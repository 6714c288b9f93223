/** What the Lab is, and the three lines that start one. */
import { List, Stack, Text } from "@mantine/core";
import { Command } from "@/parts/Command";
import { Panel } from "@/parts/Panel";

const STEPS = [
  ["Start it; it costs nothing and needs no account:", "crucible lab up"],
  ["In the same shell, make clients of Amazon talk to it:", 'eval "$(crucible lab env aws)"'],
  ["Start the server there, so that it buys in the Lab:", "crucible server stop; crucible server start"],
  ["Run a job on a spot machine of it:", "crucible submit examples/lab/hello_gpu.yaml"],
] as const;

export function NoLab({ reason }: { reason: string | null }) {
  return (
    <Panel title="There is no Lab here">
      <Text size="sm" className="dim">
        {reason}
      </Text>
      <Text size="sm" maw={720}>
        The Lab is a cloud on the server&apos;s computer. It sells machines through Amazon&apos;s own protocols, at
        recorded prices, and keeps a bill to the millionth of a dollar that nobody has to pay. Its spot machines are
        taken away, its answers get lost: whatever a real cloud does to a job can be tried here first.
      </Text>
      <List
        type="ordered"
        size="sm"
        spacing="sm"
        styles={{ itemWrapper: { maxWidth: "100%" }, itemLabel: { minWidth: 0 } }}
      >
        {STEPS.map(([words, line]) => (
          <List.Item key={line}>
            <Stack gap={4}>
              <span>{words}</span>
              <Command line={line} />
            </Stack>
          </List.Item>
        ))}
      </List>
    </Panel>
  );
}
