/** Hours in which a rule waits, by the clocks on the wall of a zone. */
import { Autocomplete, Checkbox, Fieldset, Group, Stack, Switch, TextInput } from "@mantine/core";
import type { FieldsProps } from "@/pages/alerts/RuleDialog";
import type { RuleForm } from "@/pages/alerts/words";
import { problemAt } from "@/parts/problems";

const ZONES = ["UTC", ...Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC")];
const FEW = 8;

export function QuietFields({ form, error, onChange }: FieldsProps) {
  const set = (more: Partial<RuleForm["quiet"]>) => onChange({ quiet: { ...form.quiet, ...more } });
  const { start, end, time_zone, critical_passes } = form.quiet;
  return (
    <Stack gap="xs">
      <Switch
        label="Quiet hours"
        description="What comes meanwhile is one message at their end"
        checked={form.isQuiet}
        onChange={(event) => onChange({ isQuiet: event.currentTarget.checked })}
        error={problemAt(error, "quiet")}
      />
      {form.isQuiet && (
        <Fieldset legend="Quiet">
          <Stack gap="xs">
            <Group grow>
              <TextInput
                type="time"
                label="From"
                required
                value={start}
                onChange={(event) => set({ start: event.currentTarget.value })}
              />
              <TextInput
                type="time"
                label="To"
                required
                value={end}
                onChange={(event) => set({ end: event.currentTarget.value })}
              />
            </Group>
            <Autocomplete
              label="Time zone"
              data={ZONES}
              limit={FEW}
              value={time_zone}
              onChange={(value) => set({ time_zone: value })}
            />
            <Checkbox
              label="What is critical passes"
              checked={critical_passes ?? true}
              onChange={(event) => set({ critical_passes: event.currentTarget.checked })}
            />
          </Stack>
        </Fieldset>
      )}
    </Stack>
  );
}
