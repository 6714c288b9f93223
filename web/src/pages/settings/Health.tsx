/** How providers and the server itself are: what is wrong, and what to do about it. */
import { Alert, Button, Code, Group, Stack, Table, Text } from "@mantine/core";
import { useState } from "react";
import { Command } from "@/parts/Command";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { StateBadge } from "@/parts/StateBadge";
import { isAdmin, useMe } from "@/session/me";
import { useHealth, useProviderHealth } from "@/pages/settings/queries";
import { byUrgency, problemsOf, providersOf } from "@/pages/settings/checks";
import type { Shape } from "@/api/client";

export function Health() {
  const query = useHealth();
  const [asked, setAsked] = useState<string | null>(null);
  const mayAsk = isAdmin(useMe().data);
  return (
    <Loaded query={query} lines={8}>
      {({ system }) => (
        <Stack>
          <Checks
            title="Providers"
            checks={byUrgency(system.checks.filter((check) => check.name === "provider"))}
            command="crucible doctor"
          />
          {mayAsk && (
            <Panel title="Ask a provider now">
              <Group>
                {providersOf(system.checks).map((provider) => (
                  <Button
                    key={provider}
                    size="xs"
                    variant={asked === provider ? "filled" : "default"}
                    aria-pressed={asked === provider}
                    onClick={() => setAsked(provider)}
                  >
                    {provider}
                  </Button>
                ))}
              </Group>
              {asked && <Provider provider={asked} />}
            </Panel>
          )}
          <Checks
            title="The server"
            checks={byUrgency(system.checks.filter((check) => check.name !== "provider"))}
            command="crucible health"
          />
        </Stack>
      )}
    </Loaded>
  );
}

function Checks({ title, checks, command }: { title: string; checks: Shape<"SystemCheck">[]; command: string }) {
  return (
    <Panel title={title} aside={<Command line={command} />}>
      <Rows label={title} columns={["What", "State", "Says"]} minWidth={520}>
        {checks.map((check) => (
          <Table.Tr key={`${check.name} ${check.subject}`}>
            <Table.Td style={{ whiteSpace: "nowrap" }}>
              {check.name === "provider" ? check.subject : [check.name, check.subject].filter(Boolean).join(" ")}
            </Table.Td>
            <Table.Td>
              <StateBadge state={check.status} />
            </Table.Td>
            <Table.Td>
              {check.words}
              {check.advice && (
                <Text size="xs" className="dim">
                  {check.advice}
                </Text>
              )}
            </Table.Td>
          </Table.Tr>
        ))}
      </Rows>
    </Panel>
  );
}

function Provider({ provider }: { provider: string }) {
  const query = useProviderHealth(provider);
  return (
    <Loaded query={query}>
      {({ places }) => (
        <Stack gap="xs">
          <Command line={`crucible doctor ${provider}`} />
          {places.map((place, at) => {
            const { region, problems, facts } = problemsOf(place);
            return (
              <Alert
                key={region ?? at}
                color={place.status === "healthy" ? "green" : "orange"}
                variant="light"
                title={`${region ?? provider}: ${place.status}`}
              >
                {problems.map((problem) => (
                  <Text key={problem} size="sm">
                    {problem}
                  </Text>
                ))}
                <Code
                  block
                  mah={180}
                  tabIndex={0}
                  style={{ overflow: "auto" }}
                  aria-label={`facts of ${region ?? provider}`}
                >
                  {facts}
                </Code>
              </Alert>
            );
          })}
        </Stack>
      )}
    </Loaded>
  );
}
