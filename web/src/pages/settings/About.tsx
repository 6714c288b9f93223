/** What this server is, and who is signed in. */
import { SimpleGrid, Table, Text } from "@mantine/core";
import { Command } from "@/parts/Command";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { server } from "@/place";
import { useMe } from "@/session/me";
import { useVersion } from "@/pages/settings/queries";

export function About() {
  const version = useVersion();
  const me = useMe();
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <Panel title="This server" aside={<Command line="crucible version" />}>
        <Loaded query={version}>
          {(found) => (
            <Pairs
              label="This server"
              pairs={[
                ["Version", found.version],
                ["API", found.api],
                ["Protocol of agents", String(found.agent_protocol)],
                ["Address", server],
              ]}
            />
          )}
        </Loaded>
        <Text size="sm">On a command line:</Text>
        <Command line={`crucible login ${server.replace(/\/$/, "")}`} />
      </Panel>
      <Panel title="You">
        <Loaded query={me}>
          {(found) => (
            <Pairs
              label="You"
              pairs={[
                ["Name", found.name],
                ["Role", found.role],
                [
                  "Teams",
                  Object.entries(found.teams)
                    .map(([team, role]) => `${team} (${role})`)
                    .join(", ") || "none",
                ],
                ["This token is for", found.grants.join(", ") || "whatever you may do"],
              ]}
            />
          )}
        </Loaded>
      </Panel>
    </SimpleGrid>
  );
}

function Pairs({ label, pairs }: { label: string; pairs: [string, string][] }) {
  return (
    <Table withRowBorders={false} verticalSpacing={4} aria-label={label}>
      <Table.Tbody>
        {pairs.map(([name, value]) => (
          <Table.Tr key={name}>
            <Table.Th scope="row" fw={400} w={160} className="dim">
              {name}
            </Table.Th>
            <Table.Td style={{ overflowWrap: "anywhere" }}>{value}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
