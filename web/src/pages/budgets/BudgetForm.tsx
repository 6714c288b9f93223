/** A new budget, or another limit, end or marks of one that is there. */
import { Autocomplete, NumberInput, SegmentedControl, Select, Stack, Text, TextInput } from "@mantine/core";
import { useId, useState } from "react";
import { useCreate, useEdit, useProjectTeams, useTeams } from "@/pages/budgets/queries";
import { nameOf, SCOPES, setCommand, sharesOf, written, type Budget, type Wanted } from "@/pages/budgets/words";
import { Confirm } from "@/parts/Confirm";
import { problemAt, problemBeside } from "@/parts/problems";

const USUAL: Wanted = {
  scope: "team",
  name: "",
  period: "month",
  limit_usd: 100,
  when_spent: "pause",
  thresholds: [0.5, 0.8, 0.95],
};
const FIELDS = ["scope", "name", "period", "limit_usd", "when_spent", "thresholds"];

/** `budget`: the one that is changed; none: a new one. */
export function BudgetForm({ budget, onClose }: { budget?: Budget; onClose: () => void }) {
  const [wanted, setWanted] = useState<Wanted>(budget ?? USUAL);
  const [marks, setMarks] = useState(written(wanted.thresholds));
  const thresholds = sharesOf(marks);
  const create = useCreate(onClose);
  const edit = useEdit(budget?.id ?? "", onClose);
  const { error, isPending } = budget ? edit : create;
  const set = (change: Partial<Wanted>) => setWanted({ ...wanted, ...change });
  const whole = { ...wanted, name: wanted.scope === "server" ? "" : wanted.name, thresholds: thresholds ?? [] };
  const { scope, name, period, limit_usd, when_spent } = whole;
  const send = () => {
    if (budget) edit.mutate({ limit_usd, when_spent, thresholds: whole.thresholds, version: budget.version });
    else create.mutate({ scope, name, period, limit_usd, when_spent, thresholds: whole.thresholds });
  };
  return (
    <Confirm
      title={budget ? `The budget of ${nameOf(budget)}` : "A new budget"}
      action={budget ? "Change it" : "Set it"}
      command={setCommand(whole)}
      isOpen
      isSafe
      isPending={isPending}
      isBlocked={thresholds === null}
      error={problemBeside(error, FIELDS)}
      onConfirm={send}
      onClose={onClose}
    >
      {!budget && <Whose wanted={wanted} error={error} onChange={set} />}
      <NumberInput
        label="Limit, in US dollars"
        min={0}
        decimalScale={6}
        thousandSeparator=","
        prefix="$"
        required
        data-autofocus
        value={limit_usd}
        onChange={(value) => set({ limit_usd: Number(value) || 0 })}
        error={problemAt(error, "limit_usd")}
      />
      <Choice
        label="When it is spent"
        data={[
          { value: "pause", label: "jobs save and wait for more" },
          { value: "stop", label: "jobs save and end" },
        ]}
        value={when_spent}
        onChange={(value) => set({ when_spent: value as Wanted["when_spent"] })}
      />
      <TextInput
        label="Tell people at"
        description="Shares of the limit in percent, with commas"
        value={marks}
        onChange={(event) => setMarks(event.currentTarget.value)}
        error={thresholds === null ? "Write such as 50, 80, 95" : problemAt(error, "thresholds")}
      />
    </Confirm>
  );
}

interface WhoseProps {
  wanted: Wanted;
  error: unknown;
  onChange: (change: Partial<Wanted>) => void;
}

function Whose({ wanted, error, onChange }: WhoseProps) {
  const teams = useTeams();
  const projects = useProjectTeams();
  const known: Partial<Record<Wanted["scope"], string[]>> = {
    team: teams.data ?? [],
    project: Object.keys(projects.data ?? {}),
  };
  const isJob = wanted.scope === "job";
  return (
    <>
      <Select
        label="For a"
        data={SCOPES}
        value={wanted.scope}
        allowDeselect={false}
        onChange={(value) =>
          onChange({ scope: value as Wanted["scope"], name: "", ...(value === "job" && { period: "once" }) })
        }
        error={problemAt(error, "scope")}
      />
      {wanted.scope !== "server" && (
        <Autocomplete
          label={isJob ? "Id of the job" : "Name"}
          required
          data={known[wanted.scope] ?? []}
          value={wanted.name}
          onChange={(name) => onChange({ name })}
          error={problemAt(error, "name")}
        />
      )}
      {!isJob && (
        <Choice
          label="Counts"
          data={[
            { value: "month", label: "each month" },
            { value: "once", label: "once, from now on" },
          ]}
          value={wanted.period}
          onChange={(value) => onChange({ period: value as Wanted["period"] })}
        />
      )}
    </>
  );
}

interface ChoiceProps {
  label: string;
  data: { value: string; label: string }[];
  value: string;
  onChange: (value: string) => void;
}

function Choice({ label, ...rest }: ChoiceProps) {
  const id = useId();
  return (
    <Stack gap={2}>
      <Text size="sm" fw={500} id={id}>
        {label}
      </Text>
      <SegmentedControl aria-labelledby={id} fullWidth {...rest} />
    </Stack>
  );
}
