import { Group, Stack, Switch, Table, Text } from "@mantine/core";
import type { Shape } from "@/api/client";
import { Command } from "@/parts/Command";
import { Loaded } from "@/parts/Loaded";
import { useAddress } from "@/parts/address";
import { StateBadge } from "@/parts/StateBadge";
import { When } from "@/parts/When";
import { count, plural } from "@/parts/words";
import type { TabProps } from "@/pages/job/JobTabs";
import { folded } from "@/pages/job/history/folding";
import { useEvents } from "@/pages/job/queries";

/** With `all=true` more is told of each. */
type Event = Shape<"JobEvent"> & { kind?: string; id?: string; type?: string; body?: Record<string, unknown> };

const MOST = 1000;

export default function EventsTab({ job, isOver }: TabProps) {
  const [params, setParams] = useAddress();
  const isFull = params["all"] === "1";
  const events = useEvents(job.id, isFull, isOver);
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Switch
          size="sm"
          label="Everything that happened, not only changes of state"
          checked={isFull}
          onChange={(event) => setParams({ all: event.currentTarget.checked ? "1" : undefined })}
        />
        <Command line={`crucible events ${job.id}${isFull ? " --all" : ""}`} />
      </Group>
      <Loaded query={events} lines={6}>
        {({ items }) => <Rows items={[...items].reverse() as Event[]} isFull={isFull} />}
      </Loaded>
    </Stack>
  );
}

function Rows({ items, isFull }: { items: Event[]; isFull: boolean }) {
  const shown = isFull ? items.map((event) => ({ event, saves: 0 })) : folded(items);
  return (
    <Table.ScrollContainer minWidth={720} mah="70vh" tabIndex={0} aria-label="events">
      <Table stickyHeader>
        {shown.length > MOST && (
          <Table.Caption>
            the newest {MOST} of {plural(shown.length, "event")}
          </Table.Caption>
        )}
        <Table.Thead>
          <Table.Tr>
            <Table.Th>when</Table.Th>
            {isFull && <Table.Th>of</Table.Th>}
            <Table.Th>what</Table.Th>
            <Table.Th>why</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {shown.slice(0, MOST).map(({ event: one, saves }) => (
            <Table.Tr key={one.seq}>
              <Table.Td style={{ whiteSpace: "nowrap" }}>
                <When at={one.at} exact />
              </Table.Td>
              {isFull && <Table.Td title={one.id}>{one.kind}</Table.Td>}
              <Table.Td>{saves > 0 ? <StateBadge state="checkpointing" /> : <What event={one} />}</Table.Td>
              <Table.Td style={{ overflowWrap: "anywhere" }}>
                {saves > 1 ? `${count(saves)} times, the last of them` : (one.reason ?? reasonOf(one))}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function What({ event }: { event: Event }) {
  if (!event.to) return <Text size="sm">{spaced(event.type ?? "")}</Text>;
  return (
    <Group gap={6} wrap="nowrap">
      {event.from && (
        <>
          <StateBadge state={event.from} />
          <span aria-label="to">→</span>
        </>
      )}
      <StateBadge state={event.to} />
    </Group>
  );
}

/** TaskAdvanced: task advanced. */
export function spaced(type: string): string {
  return type.replace(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
}

function reasonOf({ body }: Event): string {
  const told = Object.entries(body ?? {}).filter(
    ([name, value]) => name !== "at" && value !== null && typeof value !== "object",
  );
  return told.map(([name, value]) => `${name.replaceAll("_", " ")}: ${String(value)}`).join(" · ");
}
