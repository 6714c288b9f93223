/** Whose notices a rule is about. */
import { Group, Select, TextInput } from "@mantine/core";
import type { FieldsProps } from "@/pages/alerts/RuleDialog";
import type { RuleForm } from "@/pages/alerts/words";
import { problemAt } from "@/parts/problems";

const SCOPES = [
  { value: "server", label: "everything that I see" },
  { value: "team", label: "a team" },
  { value: "project", label: "a project" },
  { value: "user", label: "a user" },
  { value: "job", label: "jobs" },
];

export function ScopeFields({ form, error, onChange }: FieldsProps) {
  const isAll = form.scopeKind === "server";
  return (
    <Group grow align="flex-start">
      <Select
        label="Of"
        data={SCOPES}
        value={form.scopeKind}
        allowDeselect={false}
        onChange={(value) => onChange({ scopeKind: value as RuleForm["scopeKind"] })}
        error={isAll ? problemAt(error, "scope") : undefined}
      />
      {!isAll && (
        <TextInput
          label={form.scopeKind === "job" ? "Name or pattern: train-*" : "Name"}
          required
          value={form.scopeName}
          onChange={(event) => onChange({ scopeName: event.currentTarget.value })}
          error={problemAt(error, "scope")}
        />
      )}
    </Group>
  );
}
