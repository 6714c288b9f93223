/** A new rule, with only the fields that its kind takes. */
import { Group, NumberInput, Select, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { Confirm } from "@/parts/Confirm";
import { failCommand } from "@/pages/lab/words";
import { useFail, type FaultKind, type NewFault } from "@/pages/lab/queries";

const FIRST: NewFault = { kind: "throttle" };

interface Props {
  kinds: FaultKind[];
  isOpen: boolean;
  onClose: () => void;
}

export function FaultDialog({ kinds, isOpen, onClose }: Props) {
  const [rule, setRule] = useState<NewFault>(FIRST);
  const close = () => {
    fail.reset();
    setRule(FIRST);
    onClose();
  };
  const fail = useFail(() => {
    setRule(FIRST);
    onClose();
  });
  const set = (changes: Partial<NewFault>) => setRule({ ...rule, ...changes });
  const kind = kinds.find((one) => one.kind === rule.kind);
  return (
    <Confirm
      title="Make something go wrong"
      action="Add the fault"
      command={failCommand(rule)}
      isOpen={isOpen}
      isPending={fail.isPending}
      error={fail.error}
      onClose={close}
      onConfirm={() => fail.mutate(rule)}
    >
      <Select
        label="What"
        data={kinds.map((one) => one.kind)}
        value={rule.kind}
        allowDeselect={false}
        searchable
        onChange={(value) => value && setRule({ kind: value })}
      />
      <Text size="sm" className="dim">
        {kind?.does}
      </Text>
      {kind?.strikes === "requests" && <Operation kind={kind} rule={rule} set={set} />}
      {kind?.seconds && <Seconds usual={kind.seconds} rule={rule} set={set} />}
      <Group grow align="flex-start">
        <NumberInput
          label="Chance"
          description="of each time"
          min={0.001}
          max={1}
          step={0.1}
          placeholder="1"
          value={rule.probability ?? ""}
          onChange={(value) => set({ probability: value === "" ? undefined : Number(value) })}
        />
        <NumberInput
          label="Count"
          description="then no more"
          min={1}
          placeholder="no end"
          value={rule.count ?? ""}
          onChange={(value) => set({ count: value === "" ? undefined : Number(value) })}
        />
        <TextInput
          label="For"
          description="90s, 5m, 1h"
          placeholder="until removed"
          value={rule.for ?? ""}
          onChange={(event) => set({ for: event.currentTarget.value || undefined })}
        />
      </Group>
    </Confirm>
  );
}

interface FieldProps {
  rule: NewFault;
  set: (changes: Partial<NewFault>) => void;
}

function Operation({ kind, rule, set }: FieldProps & { kind: FaultKind }) {
  return (
    <TextInput
      label="In which requests"
      description="a name or a pattern such as Describe*"
      placeholder={kind.operations.join(", ") || "all of them"}
      value={rule.operation ?? ""}
      onChange={(event) => set({ operation: event.currentTarget.value || undefined })}
    />
  );
}

function Seconds({ usual, rule, set }: FieldProps & { usual: number[] }) {
  const [low = 0, high = low] = Array.isArray(rule.seconds) ? rule.seconds : usual;
  const write = (from: number, to: number) => set({ seconds: [from, to] });
  return (
    <Group grow>
      <NumberInput label="Seconds, at least" value={low} onChange={(value) => write(Number(value), high)} />
      <NumberInput label="at most" value={high} onChange={(value) => write(low, Number(value))} />
    </Group>
  );
}
