/** Which GPU somebody waits for, and how cheap it must become. */
import { Fieldset, Group, NumberInput, Select, Stack, TextInput } from "@mantine/core";
import type { FieldsProps } from "@/pages/alerts/RuleDialog";
import type { RuleForm } from "@/pages/alerts/words";
import { problemAt } from "@/parts/problems";

const PARTS = ["gpu", "provider", "market", "below_usd", "drop"];

export function PriceFields({ form, error, onChange }: FieldsProps) {
  const set = (more: Partial<RuleForm["price"]>) => onChange({ price: { ...form.price, ...more } });
  const { gpu, provider, market, below, dropPercent } = form.price;
  const isOfPart = PARTS.some((part) => problemAt(error, `price.${part}`));
  return (
    <Fieldset legend="A price to wait for">
      <Stack gap="xs">
        <TextInput
          label="GPU"
          placeholder="H100"
          required
          value={gpu}
          onChange={(event) => set({ gpu: event.currentTarget.value })}
          error={problemAt(error, "price.gpu") ?? (isOfPart ? undefined : problemAt(error, "price"))}
        />
        <Group grow align="flex-start">
          <NumberInput
            label="Below, $ an hour"
            min={0}
            value={below ?? ""}
            onChange={(value) => set({ below: value === "" ? null : Number(value) })}
            error={problemAt(error, "price.below_usd")}
          />
          <NumberInput
            label="Or cheaper by, %"
            min={0}
            max={99}
            value={dropPercent ?? ""}
            onChange={(value) => set({ dropPercent: value === "" ? null : Number(value) })}
            error={problemAt(error, "price.drop")}
          />
        </Group>
        <Group grow align="flex-start">
          <Select
            label="Market"
            data={[
              { value: "", label: "any" },
              { value: "on_demand", label: "on demand" },
              { value: "spot", label: "spot" },
            ]}
            value={market}
            allowDeselect={false}
            onChange={(value) => set({ market: value ?? "" })}
          />
          <TextInput
            label="Provider"
            placeholder="any"
            value={provider}
            onChange={(event) => set({ provider: event.currentTarget.value })}
            error={problemAt(error, "price.provider")}
          />
        </Group>
      </Stack>
    </Fieldset>
  );
}
