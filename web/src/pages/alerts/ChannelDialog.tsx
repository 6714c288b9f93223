/** A new place to tell of things. */
import { PasswordInput, Select, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import type { Shape } from "@/api/client";
import { useAddChannel } from "@/pages/alerts/queries";
import type { Channel } from "@/pages/alerts/words";
import { Confirm } from "@/parts/Confirm";
import { problemAt, problemBeside } from "@/parts/problems";
import { useMe } from "@/session/me";

const KINDS: { value: Channel["kind"]; label: string; address: string; like: string }[] = [
  { value: "email", label: "E-mail", address: "Mail addresses, with commas", like: "ann@example.org" },
  { value: "slack", label: "Slack", address: "Incoming webhook", like: "https://hooks.slack.com/services/…" },
  { value: "webhook", label: "Webhook", address: "Address", like: "https://example.org/hook" },
  { value: "apprise", label: "Apprise", address: "Address of apprise", like: "discord://…" },
];
const FIELDS = ["name", "team", "kind", "address"];

interface Props {
  onMade: (made: Shape<"ChannelMade">) => void;
  onClose: () => void;
}

export function ChannelDialog({ onMade, onClose }: Props) {
  const me = useMe();
  const [form, setForm] = useState({ name: "", team: "", kind: "email" as Channel["kind"], address: "" });
  const set = (more: Partial<typeof form>) => setForm({ ...form, ...more });
  const add = useAddChannel((made) => {
    onClose();
    onMade(made);
  });
  const { error } = add;
  const kind = KINDS.find((one) => one.value === form.kind);
  const teams = Object.entries(me.data?.teams ?? {}).filter(([, role]) => role === "manager");
  const isSecret = form.kind === "slack" || form.kind === "apprise";
  const Address = isSecret ? PasswordInput : TextInput;
  const to = isSecret ? "- < url.txt" : form.address || "ADDRESS";
  return (
    <Confirm
      title="A new channel"
      action="Add it"
      command={`crucible alert channel add ${form.name || "NAME"} ${form.kind} ${to}${form.team && ` --team ${form.team}`}`}
      isOpen
      isSafe
      isPending={add.isPending}
      error={problemBeside(error, FIELDS)}
      onConfirm={() => add.mutate({ ...form, team: form.team || null })}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        required
        data-autofocus
        value={form.name}
        onChange={(event) => set({ name: event.currentTarget.value })}
        error={problemAt(error, "name")}
      />
      {teams.length > 0 && (
        <Select
          label="Whose"
          data={[{ value: "", label: "my own" }, ...teams.map(([team]) => ({ value: team, label: `team ${team}` }))]}
          value={form.team}
          allowDeselect={false}
          onChange={(value) => set({ team: value ?? "" })}
          error={problemAt(error, "team")}
        />
      )}
      <Select
        label="Kind"
        data={KINDS.map(({ value, label }) => ({ value, label }))}
        value={form.kind}
        allowDeselect={false}
        onChange={(value) => set({ kind: value as Channel["kind"], address: "" })}
        error={problemAt(error, "kind")}
      />
      <Address
        label={kind?.address}
        placeholder={kind?.like}
        required
        autoComplete="off"
        value={form.address}
        onChange={(event) => set({ address: event.currentTarget.value })}
        error={problemAt(error, "address")}
      />
      {form.kind === "webhook" && <Text size="sm">A secret to sign with is made up, and shown once.</Text>}
    </Confirm>
  );
}
