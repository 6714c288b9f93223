/** Sends a message to a channel now, and says what came of it. */
import { Button, Group, Text } from "@mantine/core";
import { asApiError } from "@/api/errors";
import { useTestChannel } from "@/pages/alerts/queries";
import type { Channel } from "@/pages/alerts/words";

export function TestButton({ channel, isTheirs }: { channel: Channel; isTheirs: boolean }) {
  const test = useTestChannel();
  return (
    <Group gap="xs" wrap="nowrap">
      <Button
        size="compact-sm"
        variant="default"
        disabled={!isTheirs}
        loading={test.isPending}
        aria-label={`test ${channel.name}`}
        title={isTheirs ? `crucible alert test ${channel.name}` : "kept by others"}
        onClick={() => test.mutate(channel.id)}
      >
        Test
      </Button>
      <Text size="sm" role="status" component="span" maw={320}>
        {test.data && <span style={{ color: "var(--good)" }}>taken: {test.data.delivery}</span>}
        {test.error && <span style={{ color: "var(--bad)" }}>{asApiError(test.error).message}</span>}
      </Text>
    </Group>
  );
}
