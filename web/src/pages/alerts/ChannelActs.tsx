/** What can be done to a channel, and the secret that is shown once. */
import { Alert, Button, Group, Modal, Stack, Text } from "@mantine/core";
import type { Shape } from "@/api/client";
import { useRemoveChannel, useRotate } from "@/pages/alerts/queries";
import type { Channel } from "@/pages/alerts/words";
import { Command } from "@/parts/Command";
import { Confirm } from "@/parts/Confirm";

type Made = Shape<"ChannelMade">;

interface Props {
  channel: Channel;
  onClose: () => void;
}

export function RemoveChannel({ channel, onClose }: Props) {
  const remove = useRemoveChannel(onClose);
  return (
    <Confirm
      title={`Remove the channel ${channel.name}`}
      action="Remove"
      command={`crucible alert channel rm ${channel.name}`}
      isOpen
      isPending={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate(channel.id)}
      onClose={onClose}
    >
      <Text size="sm">Refused while a rule sends there. Its address is forgotten.</Text>
    </Confirm>
  );
}

export function RotateSecret({ channel, onMade, onClose }: Props & { onMade: (made: Made) => void }) {
  const rotate = useRotate((made) => {
    onClose();
    onMade(made);
  });
  return (
    <Confirm
      title={`A new secret for ${channel.name}`}
      action="Rotate"
      command={`crucible alert channel rotate ${channel.name}`}
      isOpen
      isSafe
      isPending={rotate.isPending}
      error={rotate.error}
      onConfirm={() => rotate.mutate(channel.id)}
      onClose={onClose}
    >
      <Text size="sm">Messages are signed by the last secret too, until it is rotated again.</Text>
    </Confirm>
  );
}

/** Gone from this page once it is closed, and told nowhere else. */
export function SecretOnce({ made, onClose }: { made: Made | null; onClose: () => void }) {
  return (
    <Modal opened={made?.secret != null} onClose={onClose} title={`The secret of ${made?.name ?? ""}`}>
      <Stack>
        <Alert color="orange">It is shown this once: keep it where the webhook is served.</Alert>
        <Command line={made?.secret ?? ""} />
        <Group justify="flex-end">
          <Button onClick={onClose}>I have it</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
