/** Every machine of the Lab, and the ways to lose one. */
import { Anchor, Badge, Button, Group, Switch, Table, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Empty } from "@/parts/Empty";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { StateBadge } from "@/parts/StateBadge";
import { useAddress } from "@/parts/address";
import { duration } from "@/parts/words";
import { isAdmin, useMe } from "@/session/me";
import { ConsoleOf } from "@/pages/lab/ConsoleOf";
import { PreemptDialog } from "@/pages/lab/PreemptDialog";
import { micro, secondsBetween } from "@/pages/lab/words";
import type { LabMachine, LabView } from "@/pages/lab/queries";

const COLUMNS = [
  "Machine",
  "State",
  "Market",
  "Type",
  "Zone",
  "Job",
  { title: "Age there", isNumber: true },
  { title: "Cost", isNumber: true },
  { title: "Actions", isOnlyHeard: true },
];

export function canBeTaken(machine: LabMachine): boolean {
  const isAtWork = machine.state === "pending" || machine.state === "running";
  return machine.market === "spot" && isAtWork && machine.notice_at === null;
}

export function Machines({ lab }: { lab: LabView }) {
  const [search, change] = useAddress();
  const [taking, setTaking] = useState<string[] | "all" | null>(null);
  const [looking, setLooking] = useState<string | null>(null);
  const mayBreak = isAdmin(useMe().data);
  const aside = (
    <Group gap="md">
      <Switch
        label="ended ones, too"
        size="xs"
        checked={search["ended"] === "yes"}
        onChange={(event) => change({ ended: event.currentTarget.checked ? "yes" : undefined })}
      />
      {mayBreak && (
        <Button
          size="xs"
          color="red"
          variant="light"
          disabled={!lab.machines.some(canBeTaken)}
          onClick={() => setTaking("all")}
        >
          Preempt all spot
        </Button>
      )}
    </Group>
  );
  return (
    <Panel title="Machines" aside={aside}>
      {lab.machines.length === 0 ? (
        <Empty title="No machine runs" command="crucible submit examples/lab/hello_gpu.yaml">
          The server buys one when a job needs it.
        </Empty>
      ) : (
        <Rows label="Machines of the Lab" columns={COLUMNS} minWidth={860} maxHeight={420}>
          {lab.machines.map((machine) => (
            <Table.Tr key={machine.id}>
              <Cells machine={machine} now={lab.now} />
              <Table.Td>
                {mayBreak && (
                  <Group gap={4} wrap="nowrap" justify="flex-end">
                    <Button size="compact-xs" variant="subtle" color="gray" onClick={() => setLooking(machine.id)}>
                      Console
                    </Button>
                    <Button
                      size="compact-xs"
                      variant="light"
                      color="red"
                      disabled={!canBeTaken(machine)}
                      aria-label={`Preempt ${machine.id}`}
                      onClick={() => setTaking([machine.id])}
                    >
                      Preempt
                    </Button>
                  </Group>
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </Rows>
      )}
      {lab.is_cut && (
        <Text size="xs" className="dim">
          Only the newest are shown; crucible lab status --all has the others.
        </Text>
      )}
      {!mayBreak && (
        <Text size="xs" className="dim">
          Only admins take machines away or make things go wrong here.
        </Text>
      )}
      <PreemptDialog which={taking} onClose={() => setTaking(null)} regions={lab.regions} />
      <ConsoleOf machine={looking} onClose={() => setLooking(null)} />
    </Panel>
  );
}

function Cells({ machine, now }: { machine: LabMachine; now: string }) {
  const isSpot = machine.market === "spot";
  return (
    <>
      <Table.Td className="mono">{machine.id}</Table.Td>
      <Table.Td>
        <Group gap={4} wrap="nowrap">
          <StateBadge state={machine.state} />
          {machine.taken_at !== null && machine.state !== "terminated" && (
            <Badge color="orange" variant="light" tt="none">
              taken in {duration(secondsBetween(now, machine.taken_at))}
            </Badge>
          )}
          {machine.end === "seller" && <span className="dim">taken</span>}
        </Group>
      </Table.Td>
      <Table.Td>{isSpot ? "spot" : "on demand"}</Table.Td>
      <Table.Td>{machine.type}</Table.Td>
      <Table.Td>{machine.zone}</Table.Td>
      <Table.Td>
        {machine.job_id === null ? (
          <span className="dim">–</span>
        ) : (
          <Anchor component={Link} to={`/jobs/${machine.job_id}`} size="sm" className="mono">
            {machine.job_id.slice(0, 13)}
          </Anchor>
        )}
      </Table.Td>
      <Table.Td className="number">{duration(secondsBetween(machine.launched_at, machine.ended_at ?? now))}</Table.Td>
      <Table.Td className="number">{micro(machine.cost_microusd)}</Table.Td>
    </>
  );
}
