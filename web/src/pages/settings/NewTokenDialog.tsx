/** A new token: what it is for, how long it is good, and its secret, once. */
import { Alert, Button, Checkbox, Group, Modal, NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { api, told } from "@/api/client";
import { Command } from "@/parts/Command";
import { Confirm } from "@/parts/Confirm";
import { isAdmin, useMe } from "@/session/me";
import { createCommand, expiresAt, GRANTS, type NewToken } from "@/pages/settings/token-words";
import { useChange, type Grant } from "@/pages/settings/queries";

const FIRST: NewToken = { name: "", grants: [], days: 90 };
const AGES = [
  { value: "7", label: "in a week" },
  { value: "30", label: "in 30 days" },
  { value: "90", label: "in 90 days" },
  { value: "365", label: "in a year" },
  { value: "", label: "never" },
];

export function NewTokenDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const [wanted, setWanted] = useState(FIRST);
  const [secret, setSecret] = useState<string | null>(null);
  const mayAll = isAdmin(useMe().data);
  const create = useChange(
    ({ name, grants }: NewToken) =>
      told(api.POST("/v1/tokens", { body: { name, grants, expires_at: expiresAt(wanted, new Date()) } })),
    [["tokens"]],
    (made) => setSecret(made.token),
  );
  const close = () => {
    setWanted(FIRST);
    setSecret(null);
    create.reset();
    onClose();
  };
  if (secret !== null) return <Secret secret={secret} onClose={close} />;
  return (
    <Confirm
      title="New token"
      action="Make it"
      command={createCommand({ ...wanted, name: wanted.name || "NAME" })}
      isOpen={isOpen}
      isSafe
      isBlocked={wanted.name.trim() === ""}
      isPending={create.isPending}
      error={create.error}
      onClose={close}
      onConfirm={() => create.mutate(wanted)}
    >
      <TextInput
        label="Name"
        description="what it is for, so that you know it again"
        placeholder="laptop"
        required
        data-autofocus
        maxLength={200}
        value={wanted.name}
        onChange={(event) => setWanted({ ...wanted, name: event.currentTarget.value })}
      />
      <Checkbox.Group
        label="Good for"
        description="none chosen: whatever you may do"
        value={wanted.grants}
        onChange={(grants) => setWanted({ ...wanted, grants: grants as Grant[] })}
      >
        <Stack gap={6} mt={6}>
          {GRANTS.filter((one) => mayAll || !one.isForAdmins).map(({ grant, words }) => (
            <Checkbox key={grant} value={grant} label={`${grant}: ${words}`} />
          ))}
        </Stack>
      </Checkbox.Group>
      <NativeSelect
        label="Expires"
        data={AGES}
        value={wanted.days === null ? "" : String(wanted.days)}
        onChange={(event) =>
          setWanted({ ...wanted, days: event.currentTarget.value === "" ? null : Number(event.currentTarget.value) })
        }
      />
    </Confirm>
  );
}

function Secret({ secret, onClose }: { secret: string; onClose: () => void }) {
  return (
    <Modal
      opened
      onClose={onClose}
      title="Your new token"
      closeButtonProps={{ "aria-label": "close" }}
      closeOnClickOutside={false}
    >
      <Stack>
        <Alert color="orange" variant="light">
          This is the only time that it is shown. Keep it where you keep passwords.
        </Alert>
        <Command line={secret} />
        <Text size="sm" className="dim">
          To use it: crucible login, or CRUCIBLE_TOKEN in the environment of a program.
        </Text>
        <Group justify="flex-end">
          <Button onClick={onClose}>I have it</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
