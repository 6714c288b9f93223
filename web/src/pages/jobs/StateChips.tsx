/** States with how many jobs are in each; pressed ones are shown. */
import { Button, Group } from "@mantine/core";
import type { Shape } from "@/api/client";
import { count } from "@/parts/words";
import { STATES, toggled } from "@/pages/jobs/filters";

const SHORT_LIVED = new Set(["scheduled", "provisioning", "checkpointing"]);

interface Props {
  overview: Shape<"Overview"> | undefined;
  status: string;
  onChange: (status: string) => void;
}

export function StateChips({ overview, status, onChange }: Props) {
  const chosen = status === "" ? [] : status.split(",");
  const many = (state: string) => overview?.jobs[state as keyof typeof overview.jobs] ?? 0;
  const shown = STATES.filter((one) => !SHORT_LIVED.has(one) || many(one) > 0 || chosen.includes(one));
  return (
    <Group gap={6} role="group" aria-label="states">
      <Chip isOn={chosen.length === 0} onClick={() => onChange("")} name="all" />
      {shown.map((state) => (
        <Chip
          key={state}
          isOn={chosen.includes(state)}
          onClick={() => onChange(toggled(status, state))}
          name={state}
          {...(overview && { number: written(many(state), overview.most_counted) })}
        />
      ))}
    </Group>
  );
}

function written(value: number, most: number): string {
  return value >= most ? `${count(most)}+` : count(value);
}

interface ChipProps {
  isOn: boolean;
  name: string;
  number?: string;
  onClick: () => void;
}

function Chip({ isOn, name, number, onClick }: ChipProps) {
  return (
    <Button size="compact-sm" radius="xl" variant={isOn ? "light" : "default"} aria-pressed={isOn} onClick={onClick}>
      {name}
      {number !== undefined && (
        <span className={isOn ? undefined : "dim"} style={{ marginLeft: 6, fontVariantNumeric: "tabular-nums" }}>
          {number}
        </span>
      )}
    </Button>
  );
}
