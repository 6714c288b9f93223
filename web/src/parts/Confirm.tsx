/** Asks before something is done that cannot be undone, shows the same as a command, and says what went wrong. */
import { Button, Group, Modal, Stack } from "@mantine/core";
import type { ReactNode } from "react";
import { Command } from "@/parts/Command";
import { ErrorNote } from "@/parts/ErrorNote";

interface Props {
  title: string;
  /** On the button. */
  action: string;
  command?: string;
  isOpen: boolean;
  isPending: boolean;
  isSafe?: boolean;
  isBlocked?: boolean;
  error: unknown;
  onConfirm: () => void;
  onClose: () => void;
  children?: ReactNode;
}

export function Confirm(props: Props) {
  const { title, action, command, isOpen, isPending, isSafe, isBlocked, error, onConfirm, onClose, children } = props;
  return (
    <Modal opened={isOpen} onClose={onClose} title={title} closeButtonProps={{ "aria-label": "close" }}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onConfirm();
        }}
      >
        <Stack>
          {children}
          {command && <Command line={command} />}
          {error != null && <ErrorNote error={error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Back
            </Button>
            <Button type="submit" color={isSafe ? undefined : "red"} loading={isPending} disabled={isBlocked}>
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
