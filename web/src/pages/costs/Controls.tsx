/** The period, what costs are told apart by, and what they are narrowed to: all of it is in the address. */
import { Group, Pill, SegmentedControl, Select, TextInput } from "@mantine/core";
import { BYS, FILTERS, mayBeHours, type Asked, type Search } from "@/pages/costs/asked";
import { daysOf, SPANS, THIS_MONTH } from "@/pages/costs/periods";

const CHOSEN = "chosen days";

interface Props {
  asked: Asked;
  onChange: (change: Search) => void;
}

export function Controls({ asked, onChange }: Props) {
  const { span, by, step, period, only } = asked;
  const isKnown = SPANS.includes(span);
  const choose = (value: string) => {
    if (value === CHOSEN) onChange({ for: chosenOf(asked) });
    else onChange({ for: value === THIS_MONTH ? undefined : value });
  };
  return (
    <Group align="flex-end" gap="sm">
      <Select
        label="Period (UTC)"
        w={150}
        data={[...SPANS, CHOSEN]}
        value={isKnown ? span : CHOSEN}
        onChange={(value) => value && choose(value)}
        allowDeselect={false}
      />
      {!isKnown && <Days asked={asked} onChange={onChange} />}
      <Select
        label="By"
        w={150}
        data={BYS.map((value) => ({ value, label: value.replace("_", " ") }))}
        value={by}
        onChange={(value) => value && onChange({ by: value === "team" ? undefined : value })}
        allowDeselect={false}
      />
      <SegmentedControl
        aria-label="per day or hour"
        data={[
          { value: "day", label: "per day" },
          { value: "hour", label: "per hour", disabled: !mayBeHours(period, by) },
        ]}
        value={step}
        onChange={(value) => onChange({ step: value })}
      />
      {FILTERS.filter((one) => only[one] !== undefined).map((one) => (
        <Pill
          key={one}
          size="lg"
          withRemoveButton
          removeButtonProps={{ "aria-label": `no longer only ${one} ${only[one]}`, tabIndex: 0, "aria-hidden": false }}
          onRemove={() => onChange({ [one]: undefined })}
        >
          {one.replace("_", " ")}: {only[one]}
        </Pill>
      ))}
    </Group>
  );
}

function Days({ asked, onChange }: Props) {
  const [first = "", last = ""] = chosenOf(asked).split("..");
  return (
    <>
      <TextInput
        type="date"
        label="From"
        value={first}
        onChange={(event) => event.currentTarget.value && onChange({ for: `${event.currentTarget.value}..${last}` })}
      />
      <TextInput
        type="date"
        label="To, with it"
        value={last}
        error={asked.period === null && "no period"}
        onChange={(event) => event.currentTarget.value && onChange({ for: `${first}..${event.currentTarget.value}` })}
      />
    </>
  );
}

/** The days of the period as they are written: 2026-11-01..2026-11-15. */
function chosenOf({ span, period }: Asked): string {
  if (/^\d{4}-\d\d-\d\d\.\.\d{4}-\d\d-\d\d$/.test(span)) return span;
  if (period === null) return "..";
  return daysOf(period);
}
