import { Badge, Button, Group, Switch, Table, Text } from "@mantine/core";
import { asApiError } from "@/api/errors";
import { useChangeRule } from "@/pages/alerts/queries";
import { aboutOf, mayKeep, type Channel, type Rule } from "@/pages/alerts/words";
import { useNow } from "@/parts/now";
import { When } from "@/parts/When";
import { say } from "@/parts/say";
import { useMe } from "@/session/me";

export type RuleAct = "change" | "mute" | "remove";

interface Props {
  rule: Rule;
  channels: Channel[];
  onAct: (act: RuleAct) => void;
}

export function RuleRow({ rule, channels, onAct }: Props) {
  const me = useMe();
  const isTheirs = mayKeep(me.data, rule);
  const change = useChangeRule(() => undefined);
  const now = useNow();
  const isMuted = rule.muted_until !== null && new Date(rule.muted_until) > now;
  const turn = (enabled: boolean) =>
    change.mutate(
      { id: rule.id, enabled },
      { onError: (error) => say({ color: "red", message: asApiError(error).message }) },
    );
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm" fw={600}>
          {rule.name}
        </Text>
        <Text size="xs" className="dim">
          {rule.team ? `team ${rule.team}` : rule.user}
        </Text>
      </Table.Td>
      <Table.Td>{aboutOf(rule)}</Table.Td>
      <Table.Td>{rule.channels.map((id) => channels.find((one) => one.id === id)?.name ?? id).join(", ")}</Table.Td>
      <Table.Td>{rule.quiet ? `${rule.quiet.start}–${rule.quiet.end} ${rule.quiet.time_zone}` : "–"}</Table.Td>
      <Table.Td>
        <Switch
          size="md"
          aria-label={`${rule.name} is on`}
          checked={rule.enabled}
          disabled={!isTheirs || change.isPending}
          onChange={(event) => turn(event.currentTarget.checked)}
        />
        {isMuted && (
          <Badge variant="light" color="yellow" tt="none" mt={4}>
            muted, ends <When at={rule.muted_until} />
          </Badge>
        )}
      </Table.Td>
      <Table.Td>
        <Group gap={6} wrap="nowrap" justify="flex-end">
          {(["change", "mute", "remove"] as const).map((act) => (
            <Button
              key={act}
              size="compact-sm"
              variant="default"
              disabled={!isTheirs}
              title={isTheirs ? undefined : "kept by others"}
              aria-label={`${act} ${rule.name}`}
              onClick={() => onAct(act)}
            >
              {act[0]?.toUpperCase()}
              {act.slice(1)}
            </Button>
          ))}
        </Group>
      </Table.Td>
    </Table.Tr>
  );
}
