/** What is looked for; every change goes into the address. Words are taken when they are finished. */
import { Group, NumberInput, SegmentedControl, TextInput } from "@mantine/core";
import { useState } from "react";
import type { Filters } from "@/pages/prices/filters";

interface Props {
  filters: Filters;
  /** What the list at hand cannot be narrowed by. */
  without?: (keyof Filters)[];
  onChange: (changes: Partial<Filters>) => void;
}

const WORDS = [
  { name: "gpu", label: "GPU", placeholder: "H100 or H100:8" },
  { name: "provider", label: "Provider", placeholder: "aws" },
  { name: "region", label: "Region", placeholder: "us-east-1" },
  { name: "instance", label: "Instance", placeholder: "p5.48xlarge" },
] as const;

export function FilterBar({ filters, without = [], onChange }: Props) {
  return (
    <Group gap="sm" align="flex-end" role="search" aria-label="filters">
      {WORDS.filter(({ name }) => !without.includes(name)).map(({ name, label, placeholder }) => (
        <Word
          key={`${name} ${filters[name]}`}
          label={label}
          placeholder={placeholder}
          value={filters[name]}
          onChange={(value) => onChange({ [name]: value })}
        />
      ))}
      {!without.includes("maxPrice") && (
        <NumberInput
          label="Most $/h"
          w={110}
          min={0}
          value={filters.maxPrice ?? ""}
          onChange={(most) => onChange({ maxPrice: typeof most === "number" ? most : null })}
        />
      )}
      <SegmentedControl
        aria-label="market"
        value={filters.market}
        onChange={(market) => onChange({ market: market as Filters["market"] })}
        data={[
          { value: "", label: "All" },
          { value: "on_demand", label: "On demand" },
          { value: "spot", label: "Spot" },
        ]}
      />
    </Group>
  );
}

interface WordProps {
  label: string;
  placeholder: string;
  value: string;
  onChange: (value: string) => void;
}

function Word({ label, placeholder, value, onChange }: WordProps) {
  const [word, setWord] = useState(value);
  const settle = () => word.trim() !== value && onChange(word.trim());
  return (
    <TextInput
      label={label}
      placeholder={placeholder}
      w={150}
      value={word}
      onChange={(event) => setWord(event.currentTarget.value)}
      onBlur={settle}
      onKeyDown={(event) => event.key === "Enter" && settle()}
    />
  );
}
