/** The workload that is compared; every change goes into the address. */
import { Autocomplete, Group, NumberInput, Switch } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { gpusQuery } from "@/pages/compare/queries";
import type { Workload } from "@/pages/compare/workload";

export function WorkloadForm({ workload, onChange }: { workload: Workload; onChange: (next: Workload) => void }) {
  const known = useQuery(gpusQuery);
  const set = (changes: Partial<Workload>) => onChange({ ...workload, ...changes });
  const names = (known.data?.groups ?? []).map((group) => group.name).filter(Boolean);
  return (
    <Group gap="sm" align="flex-end" role="search" aria-label="workload">
      <GpuInput key={workload.gpu} gpu={workload.gpu} names={names} onChange={(gpu) => set({ gpu })} />
      <NumberInput
        label="GPUs in all"
        w={110}
        min={1}
        max={100_000}
        allowDecimal={false}
        value={workload.gpus}
        onChange={(gpus) => typeof gpus === "number" && set({ gpus })}
      />
      <NumberInput
        label="Hours"
        w={110}
        min={0.01}
        max={87_840}
        value={workload.hours}
        onChange={(hours) => typeof hours === "number" && hours > 0 && set({ hours })}
      />
      <Switch
        label="Spot too"
        mb={8}
        checked={workload.isSpot}
        onChange={(event) => set({ isSpot: event.currentTarget.checked })}
      />
    </Group>
  );
}

/** Asked for once it is a whole name: chosen, or left with Enter or Tab. */
function GpuInput({ gpu, names, onChange }: { gpu: string; names: string[]; onChange: (gpu: string) => void }) {
  const [word, setWord] = useState(gpu);
  const settle = (next: string) => next.trim() && next.trim() !== gpu && onChange(next.trim());
  return (
    <Autocomplete
      label="GPU"
      w={200}
      data={[...new Set(names)]}
      limit={50}
      value={word}
      onChange={setWord}
      onOptionSubmit={settle}
      onBlur={() => settle(word)}
      onKeyDown={(event) => event.key === "Enter" && settle(word)}
    />
  );
}
