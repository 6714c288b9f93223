import { ActionIcon, Menu, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { PersonIcon } from "@/parts/icons";
import { useMe } from "@/session/me";
import { signOut } from "@/session/token";

export function Account() {
  const me = useMe();
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="default" aria-label="account">
          <PersonIcon />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {me.data?.name ?? "…"} · {me.data?.role ?? ""}
          {Object.entries(me.data?.teams ?? {}).map(([team, role]) => (
            <Text key={team} size="xs">
              {team}: {role}
            </Text>
          ))}
        </Menu.Label>
        <Menu.Item component={Link} to="/settings">
          Settings
        </Menu.Item>
        <Menu.Item onClick={() => signOut()}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
