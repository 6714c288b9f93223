/** Who is in a team, and what they may do there. */
import { Button, Group, NativeSelect, Table, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { api, told, type Shape } from "@/api/client";
import { Confirm } from "@/parts/Confirm";
import { ErrorNote } from "@/parts/ErrorNote";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { useMe } from "@/session/me";
import { manages } from "@/pages/settings/tabs";
import { useChange, useMembers } from "@/pages/settings/queries";

type Role = Shape<"Member">["role"];
const ROLES: Role[] = ["viewer", "member", "manager"];

export function Members({ team }: { team: string }) {
  const query = useMembers(team);
  const mayChange = manages(useMe().data, team);
  const [leaving, setLeaving] = useState<string | null>(null);
  const set = useChange(
    ({ user, role }: { user: string; role: Role }) =>
      told(api.PUT("/v1/teams/{team}/members/{user}", { params: { path: { team, user } }, body: { role } })),
    [["members"], ["teams"], ["users"]],
  );
  const columns = ["Who", "Role", ...(mayChange ? [{ title: "Actions", isOnlyHeard: true }] : [])];
  return (
    <Panel title={`Members of ${team}`}>
      <Loaded query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Text size="sm" className="dim">
              Nobody yet.
            </Text>
          ) : (
            <Rows label={`Members of ${team}`} columns={columns} minWidth={420}>
              {items.map((member) => (
                <Table.Tr key={member.user_id}>
                  <Table.Td>{member.user_id}</Table.Td>
                  <Table.Td>
                    {mayChange ? (
                      <NativeSelect
                        size="xs"
                        w={120}
                        aria-label={`Role of ${member.user_id} in ${team}`}
                        data={ROLES}
                        value={member.role}
                        onChange={(event) =>
                          set.mutate({ user: member.user_id, role: event.currentTarget.value as Role })
                        }
                      />
                    ) : (
                      member.role
                    )}
                  </Table.Td>
                  {mayChange && (
                    <Table.Td ta="right">
                      <Button
                        size="compact-xs"
                        color="red"
                        variant="light"
                        aria-label={`Take out ${member.user_id} of ${team}`}
                        onClick={() => setLeaving(member.user_id)}
                      >
                        Take out
                      </Button>
                    </Table.Td>
                  )}
                </Table.Tr>
              ))}
            </Rows>
          )
        }
      </Loaded>
      {set.error && <ErrorNote error={set.error} />}
      {mayChange && <TakeIn isPending={set.isPending} onTake={(user, role) => set.mutate({ user, role })} />}
      <Leaving team={team} user={leaving} onClose={() => setLeaving(null)} />
    </Panel>
  );
}

function TakeIn({ isPending, onTake }: { isPending: boolean; onTake: (user: string, role: Role) => void }) {
  const [user, setUser] = useState("");
  const [role, setRole] = useState<Role>("member");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onTake(user, role);
        setUser("");
      }}
    >
      <Group align="flex-end" gap="xs">
        <TextInput
          label="Take in"
          placeholder="name"
          size="xs"
          value={user}
          onChange={(event) => setUser(event.currentTarget.value)}
        />
        <NativeSelect
          label="as"
          size="xs"
          data={ROLES}
          value={role}
          onChange={(event) => setRole(event.currentTarget.value as Role)}
        />
        <Button type="submit" size="xs" variant="default" loading={isPending} disabled={user === ""}>
          Take in
        </Button>
      </Group>
    </form>
  );
}

function Leaving({ team, user, onClose }: { team: string; user: string | null; onClose: () => void }) {
  const remove = useChange(
    (name: string) => told(api.DELETE("/v1/teams/{team}/members/{user}", { params: { path: { team, user: name } } })),
    [["members"], ["teams"], ["users"]],
    onClose,
  );
  return (
    <Confirm
      title={`Take ${user ?? ""} out of ${team}`}
      action="Take out"
      command={`crucible team kick ${team} ${user ?? ""}`}
      isOpen={user !== null}
      isPending={remove.isPending}
      error={remove.error}
      onClose={() => {
        remove.reset();
        onClose();
      }}
      onConfirm={() => user && remove.mutate(user)}
    >
      They see its jobs no more, but their own.
    </Confirm>
  );
}
