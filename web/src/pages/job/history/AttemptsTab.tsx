import { Accordion, Group, Stack, Table, Text } from "@mantine/core";
import type { Shape } from "@/api/client";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { StateBadge } from "@/parts/StateBadge";
import { When } from "@/parts/When";
import { duration, plural } from "@/parts/words";
import type { TabProps } from "@/pages/job/JobTabs";
import { useAttemptsOf } from "@/pages/job/queries";
import { targetOf } from "@/pages/job/timeline/geometry";

type Attempt = Shape<"AttemptItem">;

/** Every try, the newest first; inside each its machines and ranks. */
export default function AttemptsTab({ job, task, isOver }: TabProps) {
  const { attempts, items } = useAttemptsOf(job, task, isOver);
  return (
    <Stack gap="sm">
      <Loaded query={attempts}>
        {() =>
          items.length === 0 ? (
            <Empty title="Nothing was tried yet" command={`crucible why ${job.id}`} />
          ) : (
            <Accordion variant="separated" order={2} defaultValue={items.at(-1)?.id ?? null}>
              {[...items].reverse().map((one) => (
                <Accordion.Item key={one.id} value={one.id}>
                  <Accordion.Control>
                    <Heading attempt={one} />
                  </Accordion.Control>
                  <Accordion.Panel>
                    <Inside attempt={one} />
                  </Accordion.Panel>
                </Accordion.Item>
              ))}
            </Accordion>
          )
        }
      </Loaded>
      <Command line={`crucible describe ${job.id}`} />
    </Stack>
  );
}

function Heading({ attempt }: { attempt: Attempt }) {
  const ran =
    attempt.started_at && attempt.ended_at
      ? (Date.parse(attempt.ended_at) - Date.parse(attempt.started_at)) / 1000
      : null;
  return (
    <Group gap="sm">
      <Text fw={600} size="sm">
        Attempt {attempt.number}
      </Text>
      <StateBadge state={attempt.outcome ?? attempt.phase} />
      <Text size="sm" className="dim">
        {targetOf(attempt)} · began <When at={attempt.created_at} />
        {ran !== null && ` · ran ${duration(ran)}`}
        {attempt.resume_step !== null && ` · from step ${attempt.resume_step}`}
      </Text>
    </Group>
  );
}

function Inside({ attempt }: { attempt: Attempt }) {
  return (
    <Stack gap="sm">
      {attempt.reason && (
        <Text size="sm" style={{ overflowWrap: "anywhere" }}>
          {attempt.reason}
        </Text>
      )}
      <Text size="sm" className="dim">
        {plural(attempt.machines.length, "machine")}:{" "}
        <span className="mono">
          {attempt.machines
            .map((one) => `${one.machine_id ?? "not named yet"}${one.zone && ` (${one.zone})`}`)
            .join(", ")}
        </span>
      </Text>
      <Ranks attempt={attempt} />
    </Stack>
  );
}

function Ranks({ attempt }: { attempt: Attempt }) {
  return (
    <Table.ScrollContainer minWidth={680} mah={360} tabIndex={0} aria-label={`ranks of attempt ${attempt.number}`}>
      <Table stickyHeader>
        <Table.Thead>
          <Table.Tr>
            {["rank", "node", "devices", "state", "exit", "started", "ended", "reason"].map((name) => (
              <Table.Th key={name}>{name}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {attempt.ranks.map((one) => (
            <Table.Tr key={one.rank}>
              <Table.Td>{one.rank}</Table.Td>
              <Table.Td className="mono">{one.node_id}</Table.Td>
              <Table.Td>{one.devices.join(", ")}</Table.Td>
              <Table.Td>{one.state}</Table.Td>
              <Table.Td>{one.exit_code ?? (one.signal === null ? "–" : `signal ${one.signal}`)}</Table.Td>
              <Table.Td>
                <When at={one.started_at} />
              </Table.Td>
              <Table.Td>
                <When at={one.ended_at} />
              </Table.Td>
              <Table.Td style={{ overflowWrap: "anywhere" }}>{one.reason}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
