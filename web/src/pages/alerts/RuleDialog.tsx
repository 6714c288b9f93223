/** A new rule, or one that is changed. */
import { MultiSelect, NumberInput, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { PriceFields } from "@/pages/alerts/PriceFields";
import { QuietFields } from "@/pages/alerts/QuietFields";
import { ScopeFields } from "@/pages/alerts/ScopeFields";
import { useAddRule, useChangeRule } from "@/pages/alerts/queries";
import {
  bodyOf,
  formOf,
  isAboutPrices,
  KINDS,
  LEVELS,
  ruleCommand,
  usable,
  type Channel,
  type Kind,
  type Level,
  type Rule,
  type RuleForm,
} from "@/pages/alerts/words";
import { Confirm } from "@/parts/Confirm";
import { problemAt, problemBeside } from "@/parts/problems";
import { useMe } from "@/session/me";

const FIELDS = ["name", "team", "kinds", "least", "scope", "channels", "window_s", "price", "quiet"];

export interface FieldsProps {
  form: RuleForm;
  error: unknown;
  onChange: (change: Partial<RuleForm>) => void;
}

export function RuleDialog({ rule, channels, onClose }: { rule?: Rule; channels: Channel[]; onClose: () => void }) {
  const me = useMe();
  const [form, setForm] = useState(formOf(rule));
  const add = useAddRule(onClose);
  const change = useChangeRule(onClose);
  const { error, isPending } = rule ? change : add;
  const set = (more: Partial<RuleForm>) => setForm({ ...form, ...more });
  const fields = { form, error, onChange: set };
  const send = () => {
    if (rule) change.mutate({ id: rule.id, ...bodyOf(form) });
    else add.mutate({ ...bodyOf(form), team: form.team || null, enabled: true });
  };
  const choices = usable(channels, form.team, rule?.user ?? me.data?.user_id);
  return (
    <Confirm
      title={rule ? `The rule ${rule.name}` : "A new rule"}
      action={rule ? "Change it" : "Make it"}
      command={rule ? undefined : ruleCommand(form, channels)}
      isOpen
      isSafe
      isPending={isPending}
      error={problemBeside(error, FIELDS)}
      onConfirm={send}
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
      {!rule && <Whose {...fields} />}
      <MultiSelect
        label="Kinds"
        description="None: everything but prices"
        data={KINDS}
        value={form.kinds}
        onChange={(value) => set({ kinds: value as Kind[] })}
        error={problemAt(error, "kinds")}
      />
      {isAboutPrices(form) && <PriceFields {...fields} />}
      <Select
        label="At least"
        data={LEVELS}
        value={form.least}
        allowDeselect={false}
        onChange={(value) => set({ least: value as Level })}
        error={problemAt(error, "least")}
      />
      <ScopeFields {...fields} />
      <MultiSelect
        label="To these channels"
        required
        data={choices.map(({ id, name, kind }) => ({ value: id, label: `${name} (${kind})` }))}
        description={choices.length === 0 ? "There is none yet: add a channel first" : undefined}
        value={form.channels}
        onChange={(value) => set({ channels: value })}
        error={problemAt(error, "channels")}
      />
      <QuietFields {...fields} />
      <NumberInput
        label="Gather the same for, in minutes"
        min={0}
        max={1440}
        value={form.windowMin}
        onChange={(value) => set({ windowMin: Number(value) || 0 })}
        error={problemAt(error, "window_s")}
      />
    </Confirm>
  );
}

function Whose({ form, error, onChange }: FieldsProps) {
  const me = useMe();
  const teams = Object.entries(me.data?.teams ?? {}).filter(([, role]) => role === "manager");
  if (teams.length === 0) return null;
  return (
    <Select
      label="Whose"
      data={[{ value: "", label: "my own" }, ...teams.map(([team]) => ({ value: team, label: `team ${team}` }))]}
      value={form.team}
      allowDeselect={false}
      onChange={(value) => onChange({ team: value ?? "", channels: [] })}
      error={problemAt(error, "team")}
    />
  );
}
