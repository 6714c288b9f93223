/** Who tells prices, in the order in which they are believed, when last, and what went wrong. */
import { Badge, Button, Group, Stack, Table, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, told, type Shape } from "@/api/client";
import { sourcesQuery } from "@/pages/prices/queries";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { ErrorNote } from "@/parts/ErrorNote";
import { RefreshIcon } from "@/parts/icons";
import { Loaded } from "@/parts/Loaded";
import { When } from "@/parts/When";
import { count, duration, plural } from "@/parts/words";
import { say } from "@/parts/say";
import { isAdmin, useMe } from "@/session/me";

export function SourcesTab() {
  const query = useQuery(sourcesQuery);
  return (
    <Stack gap="sm">
      <Refresh />
      <Loaded query={query} lines={4}>
        {({ items, refresh_every_s, stale_after_s }) => (
          <Stack gap="sm">
            <Text size="sm" className="dim">
              Asked every {duration(refresh_every_s)}; a price is stale after {duration(stale_after_s)}.
            </Text>
            {items.length === 0 ? (
              <Empty title="Nobody tells prices" command="crucible server --price-file contract.csv">
                Those of the catalog are used, and grow old. Providers that are set up tell theirs, and so can a list of
                your own.
              </Empty>
            ) : (
              <Sources items={items} />
            )}
          </Stack>
        )}
      </Loaded>
      <Command line="crucible prices sources" />
    </Stack>
  );
}

function Refresh() {
  const me = useMe();
  const queries = useQueryClient();
  const asking = useMutation({
    mutationFn: () => told(api.POST("/v1/prices/refresh")),
    onSuccess: async ({ items }) => {
      const failed = items.filter((one) => one.error !== null);
      const changed = items.reduce((sum, one) => sum + one.changed, 0);
      say({
        color: failed.length > 0 ? "orange" : "green",
        message: `${plural(items.length, "source")} asked, ${plural(changed, "price")} changed, ${count(failed.length)} failed`,
      });
      await queries.invalidateQueries();
    },
  });
  if (!isAdmin(me.data)) return <Text size="sm">An admin can have them asked now.</Text>;
  return (
    <Stack gap="xs">
      <Group gap="sm">
        <Button
          variant="default"
          leftSection={<RefreshIcon />}
          loading={asking.isPending}
          onClick={() => asking.mutate()}
        >
          Refresh prices
        </Button>
        <Command line="crucible prices refresh" />
      </Group>
      {asking.error && <ErrorNote error={asking.error} />}
    </Stack>
  );
}

function Sources({ items }: { items: Shape<"PriceSource">[] }) {
  return (
    <Table.ScrollContainer minWidth={640} scrollAreaProps={{ viewportProps: { tabIndex: 0, "aria-label": "sources" } }}>
      <Table>
        <Table.Thead>
          <Table.Tr>
            {["source", "state", "told", "prices", "changed", "trouble"].map((name) => (
              <Table.Th
                key={name}
                scope="col"
                className={name === "prices" || name === "changed" ? "number" : undefined}
              >
                {name}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {items.map((one) => (
            <Table.Tr key={one.name}>
              <Table.Td>{one.name}</Table.Td>
              <Table.Td>
                <Badge variant="light" tt="none" color={one.error ? "red" : one.is_stale ? "orange" : "green"}>
                  {one.error ? "failed" : one.is_stale ? "stale" : "fresh"}
                </Badge>
              </Table.Td>
              <Table.Td>
                <When at={one.refreshed_at} />
              </Table.Td>
              <Table.Td className="number">{count(one.rows)}</Table.Td>
              <Table.Td className="number">{count(one.changed)}</Table.Td>
              <Table.Td>
                {one.error ? (
                  <>
                    {one.error} (<When at={one.failed_at} />)
                  </>
                ) : (
                  "–"
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
