import { ActionIcon, Button, Group, NativeSelect, Text, TextInput } from "@mantine/core";
import { useRef } from "react";
import { CloseIcon, SearchIcon } from "@/parts/icons";
import { count } from "@/parts/words";
import { useFocusKey } from "@/parts/focus-key";
import type { LogView } from "@/pages/job/log/log-view";
import type { Options } from "@/pages/job/log/options";

interface Props {
  options: Options;
  onChange: (change: Partial<Options>) => void;
  view: LogView;
  ranks: number[];
  attempts: number[];
}

export function LogToolbar({ options, onChange, view, ranks, attempts }: Props) {
  return (
    <Group gap="xs" role="toolbar" aria-label="log">
      <Find options={options} onChange={onChange} view={view} />
      <Choice label="rank" many={ranks} value={options.rank} onChange={(rank) => onChange({ rank })} />
      <Choice label="attempt" many={attempts} value={options.attempt} onChange={(attempt) => onChange({ attempt })} />
      <Toggle isOn={options.isTrouble} onClick={() => onChange({ isTrouble: !options.isTrouble, find: "" })}>
        First error
      </Toggle>
      <Toggle isOn={options.isErrorsOnly} onClick={() => onChange({ isErrorsOnly: !options.isErrorsOnly })}>
        stderr
      </Toggle>
      <Toggle isOn={options.hasTimes} onClick={() => onChange({ hasTimes: !options.hasTimes })}>
        Times
      </Toggle>
      <Toggle isOn={options.isWrapped} onClick={() => onChange({ isWrapped: !options.isWrapped })}>
        Wrap
      </Toggle>
    </Group>
  );
}

function Find({ options, onChange, view }: Pick<Props, "options" | "onChange" | "view">) {
  const input = useRef<HTMLInputElement>(null);
  useFocusKey(input);
  const isOn = options.isTrouble || options.find !== "";
  const found = view.search?.count ?? 0;
  const isGoingOn = view.isSearching || view.log.past === "loading";
  return (
    <Group gap={4} wrap="nowrap">
      <TextInput
        ref={input}
        size="xs"
        w={200}
        aria-label="find in the log"
        placeholder={options.isTrouble ? "errors" : "Find  /"}
        leftSection={<SearchIcon size={14} />}
        value={options.find}
        onChange={(event) => onChange({ find: event.currentTarget.value, isTrouble: false })}
        onKeyDown={(event) => {
          if (event.key === "Enter") view.step(event.shiftKey ? -1 : 1);
          else if (event.key === "Escape") onChange({ find: "", isTrouble: false });
        }}
      />
      {isOn && (
        <>
          <Text size="xs" role="status" className="number" miw={70}>
            {found === 0 && !isGoingOn ? "none" : `${count(view.number)} of ${count(found)}`}
            {isGoingOn && "…"}
          </Text>
          <Step label="previous match" onClick={() => view.step(-1)} mark="↑" />
          <Step label="next match" onClick={() => view.step(1)} mark="↓" />
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label="find nothing"
            onClick={() => onChange({ find: "", isTrouble: false })}
          >
            <CloseIcon size={14} />
          </ActionIcon>
        </>
      )}
    </Group>
  );
}

function Step({ label, mark, onClick }: { label: string; mark: string; onClick: () => void }) {
  return (
    <ActionIcon variant="default" aria-label={label} onClick={onClick}>
      {mark}
    </ActionIcon>
  );
}

function Toggle({ isOn, onClick, children }: { isOn: boolean; onClick: () => void; children: string }) {
  return (
    <Button size="xs" variant={isOn ? "light" : "default"} aria-pressed={isOn} onClick={onClick} px="sm">
      {children}
    </Button>
  );
}

interface ChoiceProps {
  label: string;
  many: number[];
  value: number | null;
  onChange: (value: number | null) => void;
}

function Choice({ label, many, value, onChange }: ChoiceProps) {
  if (many.length < 2) return null;
  return (
    <NativeSelect
      size="xs"
      aria-label={label}
      value={value ?? ""}
      onChange={(event) => onChange(event.currentTarget.value === "" ? null : Number(event.currentTarget.value))}
      data={[
        { value: "", label: `every ${label}` },
        ...many.map((one) => ({ value: String(one), label: `${label} ${one}` })),
      ]}
    />
  );
}
