/** A rule that is silent for a while, or no more. */
import { Select, Text } from "@mantine/core";
import { useState } from "react";
import { useChangeRule, useRemoveRule } from "@/pages/alerts/queries";
import type { Rule } from "@/pages/alerts/words";
import { Confirm } from "@/parts/Confirm";

interface Props {
  rule: Rule;
  onClose: () => void;
}

const HOUR_MS = 3_600_000;
const SPANS: Record<string, number> = { "30m": 0.5, "2h": 2, "8h": 8, "1d": 24, "7d": 168 };

export function MuteRule({ rule, onClose }: Props) {
  const [span, setSpan] = useState("2h");
  const change = useChangeRule(onClose);
  const isOff = span === "off";
  const until = () => new Date(Date.now() + (SPANS[span] ?? 0) * HOUR_MS).toISOString();
  return (
    <Confirm
      title={`Mute ${rule.name}`}
      action={isOff ? "No longer mute" : "Mute"}
      command={`crucible alert mute ${rule.name} ${isOff ? "--off" : span}`}
      isOpen
      isSafe
      isPending={change.isPending}
      error={change.error}
      onConfirm={() => change.mutate({ id: rule.id, muted_until: isOff ? null : until() })}
      onClose={onClose}
    >
      <Select
        label="For"
        data={[...Object.keys(SPANS), { value: "off", label: "no longer" }]}
        value={span}
        allowDeselect={false}
        onChange={(value) => value && setSpan(value)}
      />
      <Text size="sm">What it would have told is in the notices.</Text>
    </Confirm>
  );
}

export function RemoveRule({ rule, onClose }: Props) {
  const remove = useRemoveRule(onClose);
  return (
    <Confirm
      title={`Remove the rule ${rule.name}`}
      action="Remove"
      command={`crucible alert rm ${rule.name}`}
      isOpen
      isPending={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate(rule.id)}
      onClose={onClose}
    >
      <Text size="sm">Notices are still kept; it tells nobody of them any more.</Text>
    </Confirm>
  );
}
