/** What could be bought now, the cheapest GPU first. */
import { Badge, Button, Group, Stack, Table, Text, UnstyledButton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Shape } from "@/api/client";
import { commandOf, MOST, PAGE, type Filters } from "@/pages/prices/filters";
import { FilterBar } from "@/pages/prices/FilterBar";
import { PriceAge } from "@/pages/prices/PriceAge";
import { offersQuery } from "@/pages/prices/queries";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { count, percent, usd } from "@/parts/words";

type Offer = Shape<"crucible__wire__prices__OfferItem">;

interface Props {
  filters: Filters;
  onChange: (changes: Partial<Filters>) => void;
}

export function OffersTab({ filters, onChange }: Props) {
  const query = useQuery(offersQuery(filters));
  return (
    <Stack gap="sm">
      <FilterBar filters={filters} onChange={(changes) => onChange({ limit: PAGE, ...changes })} />
      <Loaded query={query} lines={10}>
        {({ items, matched, total }) =>
          items.length === 0 ? (
            <Empty title="No offer is like that" command="crucible offers --group-by gpu" />
          ) : (
            <div aria-busy={query.isPlaceholderData}>
              <OfferTable offers={items} sort={filters.sort} onSort={(sort) => onChange({ sort })} />
              <Group justify="space-between">
                <Text size="xs" className="dim" role="status">
                  {count(items.length)} shown, {count(matched)} of {count(total)} offers match
                </Text>
                {items.length < Math.min(matched, MOST) && (
                  <Button
                    size="xs"
                    variant="default"
                    onClick={() => onChange({ limit: Math.min(filters.limit + PAGE, MOST) })}
                  >
                    Show more
                  </Button>
                )}
              </Group>
            </div>
          )
        }
      </Loaded>
      <Command line={commandOf(filters)} />
    </Stack>
  );
}

interface TableProps {
  offers: Offer[];
  sort: Filters["sort"];
  onSort: (sort: Filters["sort"]) => void;
}

const COLUMNS: { name: string; sort?: Filters["sort"]; isFigure?: boolean }[] = [
  { name: "where", sort: "name" },
  { name: "instance" },
  { name: "GPUs" },
  { name: "memory", isFigure: true },
  { name: "market" },
  { name: "$/GPU-h", sort: "gpu_price", isFigure: true },
  { name: "$/h", sort: "price", isFigure: true },
  { name: "available", isFigure: true },
  { name: "lost/h", isFigure: true },
  { name: "price" },
];

function OfferTable({ offers, sort, onSort }: TableProps) {
  return (
    <Table.ScrollContainer minWidth={920} scrollAreaProps={{ viewportProps: { tabIndex: 0, "aria-label": "offers" } }}>
      <Table verticalSpacing={4} highlightOnHover fz="sm">
        <Table.Thead>
          <Table.Tr>
            {COLUMNS.map((column) => (
              <Table.Th
                key={column.name}
                scope="col"
                className={column.isFigure ? "number" : undefined}
                aria-sort={column.sort && (column.sort === sort ? "ascending" : "none")}
              >
                {column.sort ? (
                  <Sorted
                    name={column.name}
                    isSorted={column.sort === sort}
                    onClick={() => column.sort && onSort(column.sort)}
                  />
                ) : (
                  column.name
                )}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {offers.map((offer) => (
            <Row key={offer.id} offer={offer} />
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function Sorted({ name, isSorted, onClick }: { name: string; isSorted: boolean; onClick: () => void }) {
  return (
    <UnstyledButton onClick={onClick} fz="inherit" fw={700} mih={24} title={`sort by ${name}`}>
      {name} {isSorted ? "▲" : ""}
    </UnstyledButton>
  );
}

function Row({ offer }: { offer: Offer }) {
  return (
    <Table.Tr>
      <Table.Td>
        {offer.provider}/{offer.zone || offer.region}{" "}
        {offer.is_enabled && (
          <Badge size="sm" variant="light" color="green" tt="none">
            enabled
          </Badge>
        )}
      </Table.Td>
      <Table.Td>{offer.instance_type}</Table.Td>
      <Table.Td>{offer.gpus > 0 ? `${offer.gpus} × ${offer.gpu}` : "–"}</Table.Td>
      <Table.Td className="number">{offer.gpus > 0 ? `${count(offer.gpu_memory_gb)} GB` : "–"}</Table.Td>
      <Table.Td>{offer.market.replace("_", " ")}</Table.Td>
      <Table.Td className="number">{usd(offer.price_per_gpu_hour_usd)}</Table.Td>
      <Table.Td className="number">{usd(offer.price_per_hour_usd)}</Table.Td>
      <Table.Td className="number">{percent(offer.availability)}</Table.Td>
      <Table.Td className="number">{percent(offer.interruptions_per_hour, 1)}</Table.Td>
      <Table.Td>
        <PriceAge asOf={offer.as_of} isStale={offer.is_stale} source={offer.source} />
      </Table.Td>
    </Table.Tr>
  );
}
