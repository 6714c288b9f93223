import { Accordion, Group, Stack, Table, Text } from "@mantine/core";
import type { Shape } from "@/api/client";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { StateBadge } from "@/parts/StateBadge";
import { Told } from "@/parts/Told";
import { When } from "@/parts/When";
import { count, duration } from "@/parts/words";
import type { TabProps } from "@/pages/job/JobTabs";
import { Target } from "@/pages/job/history/Target";
import { answerOf, useAttemptsOf } from "@/pages/job/queries";

type Attempt = Shape<"AttemptItem">;

/** Every try, the newest first; inside each its machines and ranks. */
export default function AttemptsTab({ job, task, isOver }: TabProps) {
  const { attempts, items } = useAttemptsOf(job, task, isOver);
  const at = (one: Attempt) => `items.${attempts.data?.items.indexOf(one) ?? 0}`;
  return (
    <Stack gap="sm" data-answer={answerOf(job.id, "attempts")}>
      <Loaded query={attempts}>
        {() =>
          items.length === 0 ? (
            <Empty title="Nothing was tried yet" command={`crucible why ${job.id}`} />
          ) : (
            <Accordion variant="separated" order={2} defaultValue={items.at(-1)?.id ?? null}>
              {[...items].reverse().map((one) => (
                <Accordion.Item key={one.id} value={one.id}>
                  <Accordion.Control>
                    <Heading attempt={one} at={at(one)} />
                  </Accordion.Control>
                  <Accordion.Panel>
                    <Inside attempt={one} at={at(one)} />
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

/** `at`: where it is in the answer. */
interface Placed {
  attempt: Attempt;
  at: string;
}

function Heading({ attempt, at }: Placed) {
  const ran =
    attempt.started_at && attempt.ended_at
      ? (Date.parse(attempt.ended_at) - Date.parse(attempt.started_at)) / 1000
      : null;
  return (
    <Group gap="sm">
      <Text fw={600} size="sm">
        Attempt <Told at={`${at}.number`} value={attempt.number} write={count} />
      </Text>
      <StateBadge state={attempt.outcome ?? attempt.phase} />
      <Text size="sm" className="dim" component="span" lineClamp={2} style={{ overflowWrap: "anywhere" }}>
        <Target attempt={attempt} at={at} /> · began <When at={attempt.created_at} />
        {ran !== null && (
          <>
            {" "}
            · ran <Told at={`${at}.started_at..${at}.ended_at`} value={ran} write={duration} />
          </>
        )}
        {attempt.resume_step !== null && (
          <>
            {" "}
            · from step <Told at={`${at}.resume_step`} value={attempt.resume_step} write={count} />
          </>
        )}
        {attempt.outcome !== "succeeded" && attempt.reason && (
          <>
            {" "}
            · <Told at={`${at}.reason`} value={attempt.reason} />
          </>
        )}
      </Text>
    </Group>
  );
}

function Inside({ attempt, at }: Placed) {
  return (
    <Stack gap="sm">
      {attempt.reason && (
        <Text size="sm" style={{ overflowWrap: "anywhere" }}>
          <Told at={`${at}.reason`} value={attempt.reason} />
        </Text>
      )}
      <Text size="sm" className="dim">
        <Told at={`${at}.machines.length`} value={attempt.machines.length} write={count} />{" "}
        {attempt.machines.length === 1 ? "machine" : "machines"}:{" "}
        <span className="mono">
          {attempt.machines
            .map((one) => `${one.machine_id ?? "not named yet"}${one.zone && ` (${one.zone})`}`)
            .join(", ")}
        </span>
      </Text>
      <Ranks attempt={attempt} at={at} />
    </Stack>
  );
}

function Ranks({ attempt, at }: Placed) {
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
          {attempt.ranks.map((one, place) => (
            <Table.Tr key={one.rank}>
              <Table.Td>
                <Told at={`${at}.ranks.${place}.rank`} value={one.rank} />
              </Table.Td>
              <Table.Td className="mono">{one.node_id}</Table.Td>
              <Table.Td>
                <Told at={`${at}.ranks.${place}.devices`} value={one.devices.join(", ")} />
              </Table.Td>
              <Table.Td>{one.state}</Table.Td>
              <Table.Td>
                {one.exit_code === null && one.signal !== null ? (
                  <>
                    signal <Told at={`${at}.ranks.${place}.signal`} value={one.signal} />
                  </>
                ) : (
                  <Told at={`${at}.ranks.${place}.exit_code`} value={one.exit_code} />
                )}
              </Table.Td>
              <Table.Td>
                <When at={one.started_at} />
              </Table.Td>
              <Table.Td>
                <When at={one.ended_at} />
              </Table.Td>
              <Table.Td style={{ overflowWrap: "anywhere" }}>
                {one.reason && <Told at={`${at}.ranks.${place}.reason`} value={one.reason} />}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
