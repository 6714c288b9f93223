/** Teams, who is in each, and their projects. */
import { Anchor, Badge, Button, Group, SimpleGrid, Stack, Table, TextInput } from "@mantine/core";
import { useState } from "react";
import { api, told } from "@/api/client";
import { Confirm } from "@/parts/Confirm";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { When } from "@/parts/When";
import { useAddress } from "@/parts/address";
import { isAdmin, useMe } from "@/session/me";
import { Members } from "@/pages/settings/Members";
import { Projects } from "@/pages/settings/Projects";
import { useChange, useTeams, type Team } from "@/pages/settings/queries";

const COLUMNS = [
  "Team",
  "Your role",
  { title: "Members", isNumber: true },
  "Projects",
  "Since",
  { title: "Actions", isOnlyHeard: true },
];

export function Teams() {
  const query = useTeams();
  const [search, change] = useAddress();
  const mayMake = isAdmin(useMe().data);
  const [isMaking, setIsMaking] = useState(false);
  const [removing, setRemoving] = useState<Team | null>(null);
  const aside = mayMake && (
    <Button size="xs" onClick={() => setIsMaking(true)}>
      New team
    </Button>
  );
  return (
    <Loaded query={query}>
      {({ items }) => {
        const chosen = items.find((team) => team.name === search["team"]) ?? items[0];
        return (
          <Stack>
            <Panel title="Teams" aside={aside}>
              {items.length === 0 ? (
                <Empty title="You are in no team" command="crucible team create vision">
                  Jobs are counted under a team; its members see each other&apos;s.
                </Empty>
              ) : (
                <Rows label="Teams" columns={COLUMNS} minWidth={760}>
                  {items.map((team) => (
                    <Row
                      key={team.name}
                      team={team}
                      isChosen={team === chosen}
                      onChoose={() => change({ team: team.name })}
                      onRemove={mayMake ? () => setRemoving(team) : undefined}
                    />
                  ))}
                </Rows>
              )}
            </Panel>
            {chosen && (
              <SimpleGrid cols={{ base: 1, lg: 2 }}>
                <Members team={chosen.name} />
                <Projects team={chosen.name} />
              </SimpleGrid>
            )}
            <NewTeam isOpen={isMaking} onClose={() => setIsMaking(false)} />
            <Removal team={removing} onClose={() => setRemoving(null)} />
          </Stack>
        );
      }}
    </Loaded>
  );
}

interface RowProps {
  team: Team;
  isChosen: boolean;
  onChoose: () => void;
  onRemove?: () => void;
}

function Row({ team, isChosen, onChoose, onRemove }: RowProps) {
  return (
    <Table.Tr>
      <Table.Td>
        <Group gap={6}>
          <Anchor component="button" type="button" size="sm" aria-pressed={isChosen} onClick={onChoose}>
            {team.name}
          </Anchor>
          {isChosen && (
            <Badge size="xs" variant="light" tt="none">
              shown below
            </Badge>
          )}
        </Group>
      </Table.Td>
      <Table.Td>{team.role}</Table.Td>
      <Table.Td className="number">{team.members}</Table.Td>
      <Table.Td>{team.projects.join(", ") || <span className="dim">none</span>}</Table.Td>
      <Table.Td>
        <When at={team.created_at} />
      </Table.Td>
      <Table.Td ta="right">
        {onRemove && (
          <Button size="compact-xs" color="red" variant="light" aria-label={`Remove ${team.name}`} onClick={onRemove}>
            Remove
          </Button>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

function NewTeam({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const [name, setName] = useState("");
  const close = () => {
    setName("");
    create.reset();
    onClose();
  };
  const create = useChange(
    () => told(api.POST("/v1/teams", { body: { name } })),
    [["teams"]],
    () => {
      setName("");
      onClose();
    },
  );
  return (
    <Confirm
      title="New team"
      action="Make it"
      command={`crucible team create ${name || "NAME"}`}
      isOpen={isOpen}
      isSafe
      isBlocked={name === ""}
      isPending={create.isPending}
      error={create.error}
      onClose={close}
      onConfirm={() => create.mutate(undefined)}
    >
      <TextInput
        label="Name"
        required
        data-autofocus
        maxLength={64}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
    </Confirm>
  );
}

function Removal({ team, onClose }: { team: Team | null; onClose: () => void }) {
  const remove = useChange(
    (name: string) => told(api.DELETE("/v1/teams/{team}", { params: { path: { team: name } } })),
    [["teams"], ["projects"]],
    onClose,
  );
  return (
    <Confirm
      title={`Remove ${team?.name ?? ""}`}
      action="Remove"
      command={`crucible team rm ${team?.name ?? ""}`}
      isOpen={team !== null}
      isPending={remove.isPending}
      error={remove.error}
      onClose={() => {
        remove.reset();
        onClose();
      }}
      onConfirm={() => team && remove.mutate(team.name)}
    >
      It goes with its projects, and stays in the books. Refused while jobs of it are not over.
    </Confirm>
  );
}
