/** Every price with its age and source, page by page. */
import { Button, Group, Stack, Table, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import type { Shape } from "@/api/client";
import type { Filters } from "@/pages/prices/filters";
import { FilterBar } from "@/pages/prices/FilterBar";
import { PriceAge } from "@/pages/prices/PriceAge";
import { pricesQuery } from "@/pages/prices/queries";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { ErrorNote } from "@/parts/ErrorNote";
import { Waiting } from "@/parts/Loaded";
import { When } from "@/parts/When";
import { count, usd } from "@/parts/words";

export function ListTab({ filters, onChange }: { filters: Filters; onChange: (changes: Partial<Filters>) => void }) {
  const query = useInfiniteQuery(pricesQuery(filters));
  const summary = query.data?.pages[0]?.summary;
  const items = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Stack gap="sm">
      <FilterBar filters={filters} without={["maxPrice"]} onChange={onChange} />
      {query.error && <ErrorNote error={query.error} onRetry={() => void query.refetch()} />}
      {query.isPending && !query.error && <Waiting lines={10} />}
      {summary && items.length === 0 && <Empty title="No price is like that" command="crucible prices show" />}
      {summary && items.length > 0 && (
        <>
          <Text size="xs" className="dim">
            {count(summary.count)} prices, of {count(summary.priced)} the amount is known, {count(summary.stale)} are
            stale; the newest is from <When at={summary.newest} />
          </Text>
          <PriceTable items={items} />
          <Group justify="space-between">
            <Text size="xs" className="dim" role="status">
              {count(items.length)} of {count(summary.count)}
            </Text>
            {query.hasNextPage && (
              <Button
                size="xs"
                variant="default"
                loading={query.isFetchingNextPage}
                onClick={() => void query.fetchNextPage()}
              >
                Show more
              </Button>
            )}
          </Group>
        </>
      )}
      <Command line="crucible prices show" />
    </Stack>
  );
}

function PriceTable({ items }: { items: Shape<"PriceItem">[] }) {
  return (
    <Table.ScrollContainer minWidth={820} scrollAreaProps={{ viewportProps: { tabIndex: 0, "aria-label": "prices" } }}>
      <Table verticalSpacing={4} highlightOnHover fz="sm">
        <Table.Thead>
          <Table.Tr>
            {["where", "instance", "GPUs", "market", "$/h", "age", "source"].map((name) => (
              <Table.Th key={name} scope="col" className={name === "$/h" ? "number" : undefined}>
                {name}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {items.map((one) => (
            <Table.Tr key={`${one.provider} ${one.region} ${one.zone} ${one.instance_type} ${one.market}`}>
              <Table.Td>
                {one.provider}/{one.zone || one.region}
              </Table.Td>
              <Table.Td>{one.instance_type}</Table.Td>
              <Table.Td>{one.gpus > 0 ? `${one.gpus} × ${one.gpu}` : "–"}</Table.Td>
              <Table.Td>{one.market.replace("_", " ")}</Table.Td>
              <Table.Td className="number">
                {one.price_per_hour_usd === null ? "?" : usd(one.price_per_hour_usd)}
              </Table.Td>
              <Table.Td>
                <PriceAge asOf={one.as_of} isStale={one.is_stale} source={one.source} />
              </Table.Td>
              <Table.Td
                maw={260}
                className="dim"
                style={{ overflow: "hidden", textOverflow: "ellipsis", whiteSpace: "nowrap" }}
                title={one.source}
              >
                {one.source}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
