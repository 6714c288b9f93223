/** Users and services: their role, their teams, and whether they may come in. */
import { Badge, Button, NativeSelect, Table } from "@mantine/core";
import { useState } from "react";
import { api, told } from "@/api/client";
import { Confirm } from "@/parts/Confirm";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { When } from "@/parts/When";
import { isAdmin, useMe } from "@/session/me";
import { NewUserDialog } from "@/pages/settings/NewUserDialog";
import { useChange, useUsers, type User } from "@/pages/settings/queries";

const COLUMNS = ["Name", "Kind", "Role", "Teams", "Since", "State", { title: "Actions", isOnlyHeard: true }];
type Change = { user: User; role?: User["role"]; disabled?: boolean };

export function People() {
  const query = useUsers();
  const mayChange = isAdmin(useMe().data);
  const [isMaking, setIsMaking] = useState(false);
  const [asked, setAsked] = useState<Change | null>(null);
  return (
    <Panel
      title="People"
      aside={
        <Button size="xs" onClick={() => setIsMaking(true)}>
          {mayChange ? "New user" : "New service"}
        </Button>
      }
    >
      <Loaded query={query}>
        {({ items }) => (
          <Rows label="People" columns={COLUMNS} minWidth={760}>
            {items.map((user) => (
              <Row key={user.id} user={user} mayChange={mayChange} onAsk={setAsked} />
            ))}
          </Rows>
        )}
      </Loaded>
      <NewUserDialog isOpen={isMaking} onClose={() => setIsMaking(false)} />
      <Changing asked={asked} onClose={() => setAsked(null)} />
    </Panel>
  );
}

function Row({ user, mayChange, onAsk }: { user: User; mayChange: boolean; onAsk: (change: Change) => void }) {
  const isDisabled = user.disabled_at !== null;
  return (
    <Table.Tr>
      <Table.Td>{user.name}</Table.Td>
      <Table.Td>{user.kind}</Table.Td>
      <Table.Td>
        {mayChange ? (
          <NativeSelect
            size="xs"
            w={110}
            aria-label={`Role of ${user.name}`}
            data={["viewer", "member", "admin"]}
            value={user.role}
            onChange={(event) => onAsk({ user, role: event.currentTarget.value as User["role"] })}
          />
        ) : (
          user.role
        )}
      </Table.Td>
      <Table.Td>
        {Object.entries(user.teams)
          .map(([team, role]) => `${team} (${role})`)
          .join(", ") || <span className="dim">none</span>}
      </Table.Td>
      <Table.Td>
        <When at={user.created_at} />
      </Table.Td>
      <Table.Td>
        <Badge variant="light" color={isDisabled ? "red" : "green"} tt="none">
          {isDisabled ? "disabled" : "active"}
        </Badge>
      </Table.Td>
      <Table.Td ta="right">
        {mayChange && (
          <Button
            size="compact-xs"
            variant="light"
            color={isDisabled ? undefined : "red"}
            aria-label={`${isDisabled ? "Enable" : "Disable"} ${user.name}`}
            onClick={() => onAsk({ user, disabled: !isDisabled })}
          >
            {isDisabled ? "Enable" : "Disable"}
          </Button>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

function Changing({ asked, onClose }: { asked: Change | null; onClose: () => void }) {
  const change = useChange(
    ({ user, role, disabled }: Change) =>
      told(api.PATCH("/v1/users/{user}", { params: { path: { user: user.name } }, body: { role, disabled } })),
    [["users"], ["me"]],
    onClose,
  );
  const name = asked?.user.name ?? "";
  const word = asked?.disabled ? "disable" : "enable";
  const command = asked?.role ? `crucible user role ${name} ${asked.role}` : `crucible user ${word} ${name}`;
  return (
    <Confirm
      title={asked?.role ? `${name} becomes ${asked.role}` : `${word === "disable" ? "Disable" : "Enable"} ${name}`}
      action={asked?.role ? "Change the role" : word === "disable" ? "Disable" : "Enable"}
      command={command}
      isOpen={asked !== null}
      isSafe={!asked?.disabled}
      isPending={change.isPending}
      error={change.error}
      onClose={() => {
        change.reset();
        onClose();
      }}
      onConfirm={() => asked && change.mutate(asked)}
    >
      {asked?.disabled ? "None of their tokens opens anything any more. Their jobs go on." : null}
    </Confirm>
  );
}
