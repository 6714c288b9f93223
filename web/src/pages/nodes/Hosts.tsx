/** Own hosts: how each is, and what an admin can do with it. */
import { Alert, Button, Checkbox, Group, Menu, Table, Text } from "@mantine/core";
import { useState } from "react";
import { Confirm } from "@/parts/Confirm";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { StateBadge } from "@/parts/StateBadge";
import { When } from "@/parts/When";
import { isAdmin, useMe } from "@/session/me";
import { gpusOf } from "@/pages/nodes/places";
import { useHostDeed, useHosts, type Host, type HostDeed } from "@/pages/nodes/queries";

const COLUMNS = [
  "Host",
  "State",
  "Zone",
  "Use",
  "GPUs",
  { title: "Machines", isNumber: true },
  "Checked",
  { title: "Actions", isOnlyHeard: true },
];
const ADD = "crucible hosts add gpu1 --address 10.0.0.7 --user ubuntu";

export function Hosts() {
  const query = useHosts();
  const [asked, setAsked] = useState<{ host: Host; deed: HostDeed } | null>(null);
  const mayChange = isAdmin(useMe().data);
  return (
    <Panel title="Own hosts">
      <Loaded query={query}>
        {(hosts) =>
          hosts === null ? (
            <Empty title="This server keeps no own hosts" command="crucible server start --provider local,onprem">
              Computers of yours that are reached by SSH can be used like those of a cloud.
            </Empty>
          ) : hosts.length === 0 ? (
            <Empty title="No host is registered yet" command={ADD} />
          ) : (
            <Rows label="Own hosts" columns={COLUMNS} minWidth={760}>
              {hosts.map((host) => (
                <HostRow key={host.name} host={host}>
                  {mayChange && <Deeds host={host} onAsk={(deed) => setAsked({ host, deed })} />}
                </HostRow>
              ))}
            </Rows>
          )
        }
      </Loaded>
      <Asking asked={asked} onClose={() => setAsked(null)} />
    </Panel>
  );
}

function HostRow({ host, children }: { host: Host; children: React.ReactNode }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm" fw={600}>
          {host.name}
        </Text>
        <Text size="xs" className="dim">
          {host.user && `${host.user}@`}
          {host.address}
        </Text>
      </Table.Td>
      <Table.Td>
        <StateBadge state={host.reachable ? host.state : "unreachable"} />
        {host.reason && (
          <Text size="xs" className="dim" maw={260}>
            {host.reason}
          </Text>
        )}
      </Table.Td>
      <Table.Td>{host.zone}</Table.Td>
      <Table.Td>{host.use}</Table.Td>
      <Table.Td>{gpusOf(host.facts)}</Table.Td>
      <Table.Td className="number">{host.machines}</Table.Td>
      <Table.Td>
        <When at={host.checked_at} />
      </Table.Td>
      <Table.Td>{children}</Table.Td>
    </Table.Tr>
  );
}

function Deeds({ host, onAsk }: { host: Host; onAsk: (deed: HostDeed) => void }) {
  return (
    <Group justify="flex-end">
      <Menu position="bottom-end">
        <Menu.Target>
          <Button size="compact-xs" variant="default" aria-label={`actions on ${host.name}`}>
            Actions
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => onAsk("check")}>Check now</Menu.Item>
          {host.state === "ready" ? (
            <Menu.Item onClick={() => onAsk("drain")}>Drain</Menu.Item>
          ) : (
            <Menu.Item onClick={() => onAsk("resume")}>Resume</Menu.Item>
          )}
          <Menu.Item color="red" onClick={() => onAsk("remove")}>
            Remove
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </Group>
  );
}

const WORDS: Record<HostDeed, { action: string; words: string }> = {
  check: {
    action: "Check",
    words: "It is reached, and what it has is looked up. Well again, it leaves its quarantine.",
  },
  drain: { action: "Drain", words: "What runs there ends in its own time; nothing new is started." },
  resume: { action: "Resume", words: "It is used again." },
  remove: { action: "Remove", words: "It is forgotten. Refused while machines of ours live there." },
};

function Asking({ asked, onClose }: { asked: { host: Host; deed: HostDeed } | null; onClose: () => void }) {
  const [force, setForce] = useState(false);
  const close = () => {
    setForce(false);
    act.reset();
    onClose();
  };
  const act = useHostDeed(() => {
    setForce(false);
    onClose();
  });
  const deed = asked?.deed ?? "check";
  const name = asked?.host.name ?? "";
  return (
    <Confirm
      title={`${WORDS[deed].action} ${name}`}
      action={WORDS[deed].action}
      command={`crucible hosts ${deed} ${name}${force ? " --force" : ""}`}
      isOpen={asked !== null}
      isSafe={deed === "check" || deed === "resume"}
      isPending={act.isPending}
      error={act.error}
      onClose={close}
      onConfirm={() => act.mutate({ name, deed, force })}
    >
      <Text size="sm">{WORDS[deed].words}</Text>
      {deed === "remove" && (
        <Checkbox
          label="Drain it first; let one go that has not answered for very long"
          checked={force}
          onChange={(event) => setForce(event.currentTarget.checked)}
        />
      )}
      {act.isPending && deed === "check" && <Alert variant="light">A host may take half a minute to answer.</Alert>}
    </Confirm>
  );
}
