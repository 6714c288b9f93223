import { Button, Group, NativeSelect, TextInput } from "@mantine/core";
import { useRef } from "react";
import { useFocusKey } from "@/parts/focus-key";
import { SearchIcon } from "@/parts/icons";
import { useWritten } from "@/parts/written";
import { useMe } from "@/session/me";
import type { Filters } from "@/pages/jobs/filters";
import { useProjects, useTeams } from "@/pages/jobs/queries";

const PAUSE_MS = 250;

interface Props {
  filters: Filters;
  onChange: (change: Partial<Filters>) => void;
}

export function FilterBar({ filters, onChange }: Props) {
  const me = useMe().data;
  const isMine = me !== undefined && filters.user === me.user_id;
  return (
    <Group gap="xs">
      <Words words={filters.words} onChange={(words) => onChange({ words })} />
      <Button
        size="xs"
        variant={isMine ? "light" : "default"}
        aria-pressed={isMine}
        onClick={() => onChange({ user: isMine ? "" : (me?.user_id ?? "") })}
      >
        Mine
      </Button>
      <Choice
        label="team"
        value={filters.team}
        many={(useTeams().data?.items ?? []).map((one) => one.name)}
        onChange={(team) => onChange({ team })}
      />
      <Choice
        label="project"
        value={filters.project}
        many={(useProjects().data?.items ?? []).map((one) => one.name)}
        onChange={(project) => onChange({ project })}
      />
      {filters.user !== "" && !isMine && (
        <Button
          size="xs"
          variant="light"
          onClick={() => onChange({ user: "" })}
          aria-label={`not only ${filters.user}`}
        >
          user: {filters.user} ✕
        </Button>
      )}
    </Group>
  );
}

/** What is written goes into the address when one pauses. */
function Words({ words, onChange }: { words: string; onChange: (words: string) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [written, write] = useWritten(words, onChange, PAUSE_MS);
  useFocusKey(input);
  return (
    <TextInput
      ref={input}
      size="xs"
      w={240}
      aria-label="find a job"
      placeholder="Name, id, reason  /"
      leftSection={<SearchIcon size={14} />}
      value={written}
      onChange={(event) => write(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        write("");
        event.currentTarget.blur();
      }}
    />
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  many: string[];
  onChange: (value: string) => void;
}

function Choice({ label, value, many, onChange }: ChoiceProps) {
  if (many.length === 0 && value === "") return null;
  const names = value === "" || many.includes(value) ? many : [value, ...many];
  return (
    <NativeSelect
      size="xs"
      aria-label={label}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      data={[{ value: "", label: `every ${label}` }, ...names]}
    />
  );
}
