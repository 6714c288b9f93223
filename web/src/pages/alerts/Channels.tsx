/** Places that notices go to: add, try, rotate, remove. */
import { Button, Group, Table, Text } from "@mantine/core";
import { useState } from "react";
import type { Shape } from "@/api/client";
import { ChannelDialog } from "@/pages/alerts/ChannelDialog";
import { RemoveChannel, RotateSecret, SecretOnce } from "@/pages/alerts/ChannelActs";
import { TestButton } from "@/pages/alerts/TestButton";
import { useChannels } from "@/pages/alerts/queries";
import { mayHave, mayKeep, type Channel } from "@/pages/alerts/words";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { When } from "@/parts/When";
import { useMe } from "@/session/me";

type Act = "rotate" | "remove";
const COLUMNS = ["Channel", "Kind", "To", "Added", "Test", { title: "what to do", isOnlyHeard: true }];

export function Channels() {
  const me = useMe();
  const [isNew, setIsNew] = useState(false);
  const [doing, setDoing] = useState<{ act: Act; channel: Channel } | null>(null);
  const [made, setMade] = useState<Shape<"ChannelMade"> | null>(null);
  const close = () => setDoing(null);
  return (
    <Panel
      title="Channels"
      aside={
        <Group gap="xs">
          <Command line="crucible alert channel ls" />
          {mayHave(me.data) && (
            <Button size="xs" onClick={() => setIsNew(true)}>
              New channel
            </Button>
          )}
        </Group>
      }
    >
      <Loaded query={useChannels()}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No channels yet" command="crucible alert channel add me email ann@example.org">
              Mail, Slack, a signed webhook, or anything that apprise knows.
            </Empty>
          ) : (
            <Rows label="channels" minWidth={760} columns={COLUMNS}>
              {items.map((channel) => (
                <Row
                  key={channel.id}
                  channel={channel}
                  isTheirs={mayKeep(me.data, channel)}
                  onAct={(act) => setDoing({ act, channel })}
                />
              ))}
            </Rows>
          )
        }
      </Loaded>
      {isNew && <ChannelDialog onMade={setMade} onClose={() => setIsNew(false)} />}
      {doing?.act === "rotate" && <RotateSecret channel={doing.channel} onMade={setMade} onClose={close} />}
      {doing?.act === "remove" && <RemoveChannel channel={doing.channel} onClose={close} />}
      <SecretOnce made={made} onClose={() => setMade(null)} />
    </Panel>
  );
}

function Row({ channel, isTheirs, onAct }: { channel: Channel; isTheirs: boolean; onAct: (act: Act) => void }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm" fw={600}>
          {channel.name}
        </Text>
        <Text size="xs" className="dim">
          {channel.team ? `team ${channel.team}` : channel.user}
        </Text>
      </Table.Td>
      <Table.Td>{channel.kind}</Table.Td>
      <Table.Td style={{ overflowWrap: "anywhere" }}>{channel.to}</Table.Td>
      <Table.Td>
        <When at={channel.created_at} />
      </Table.Td>
      <Table.Td>
        <TestButton channel={channel} isTheirs={isTheirs} />
      </Table.Td>
      <Table.Td>
        <Group gap={6} wrap="nowrap" justify="flex-end">
          {channel.kind === "webhook" && (
            <ActButton of={channel.name} act="rotate" isTheirs={isTheirs} onClick={() => onAct("rotate")} />
          )}
          <ActButton of={channel.name} act="remove" isTheirs={isTheirs} onClick={() => onAct("remove")} />
        </Group>
      </Table.Td>
    </Table.Tr>
  );
}

function ActButton({ of, act, isTheirs, onClick }: { of: string; act: Act; isTheirs: boolean; onClick: () => void }) {
  return (
    <Button
      size="compact-sm"
      variant="default"
      disabled={!isTheirs}
      title={isTheirs ? undefined : "kept by others"}
      aria-label={`${act} ${of}`}
      onClick={onClick}
    >
      {act === "rotate" ? "Rotate" : "Remove"}
    </Button>
  );
}
