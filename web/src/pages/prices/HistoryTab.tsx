/** How prices went: every change that was recorded, as lines and as a table. */
import { Button, Group, SegmentedControl, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { LineChart } from "@/charts/LineChart";
import type { Filters } from "@/pages/prices/filters";
import { FilterBar } from "@/pages/prices/FilterBar";
import { historyQuery } from "@/pages/prices/queries";
import { MOST_LINES, seriesOf, type Change, type Series } from "@/pages/prices/series";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { When } from "@/parts/When";
import { count, usd } from "@/parts/words";

const SPANS: Record<string, number> = { "1d": 1, "7d": 7, "30d": 30, "400d": 400 };

interface Props {
  filters: Filters;
  span: string;
  onChange: (changes: Partial<Filters>) => void;
  onSpan: (span: string) => void;
}

export function HistoryTab({ filters, span, onChange, onSpan }: Props) {
  const [opened] = useState(() => Date.now());
  const known = span in SPANS ? span : "7d";
  const since = new Date(opened - (SPANS[known] ?? 7) * 86_400_000).toISOString();
  const query = useQuery(historyQuery(filters, since));
  const what = filters.instance || "p5.48xlarge";
  return (
    <Stack gap="sm">
      <Group gap="sm" align="flex-end">
        <FilterBar filters={filters} without={["gpu", "maxPrice"]} onChange={onChange} />
        <SegmentedControl
          aria-label="time span"
          value={known}
          onChange={onSpan}
          data={Object.keys(SPANS).map((one) => ({ value: one, label: one }))}
        />
      </Group>
      <Loaded query={query} lines={8}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No price has changed in that time" command="crucible server --price-file contract.csv">
              Changes are recorded as sources tell them: providers that are set up, and lists of your own.
            </Empty>
          ) : (
            <Drawn changes={items} until={new Date(query.dataUpdatedAt)} />
          )
        }
      </Loaded>
      <Command line={`crucible prices history ${what} --since ${known}`} />
    </Stack>
  );
}

function Drawn({ changes, until }: { changes: Change[]; until: Date }) {
  const { x, series } = seriesOf(changes, until);
  const shown = series.slice(0, MOST_LINES);
  return (
    <Stack gap="sm">
      <LineChart
        label="price of a machine, dollars per hour"
        x={x}
        isTime
        height={280}
        write={usd}
        lines={shown.map(({ name, values }) => ({ name, values, isStepped: true }))}
      />
      {shown.length < series.length && (
        <Text size="xs" className="dim">
          The {MOST_LINES} that changed most of {count(series.length)}; narrow it down to see others.
        </Text>
      )}
      <SeriesTable series={series} />
    </Stack>
  );
}

const FEW_ROWS = 12;

function SeriesTable({ series }: { series: Series[] }) {
  const [isWhole, setIsWhole] = useState(false);
  const shown = isWhole ? series : series.slice(0, FEW_ROWS);
  return (
    <>
      <SeriesRows series={shown} />
      {shown.length < series.length && (
        <Button variant="subtle" size="compact-sm" w="max-content" onClick={() => setIsWhole(true)}>
          Show all {count(series.length)}
        </Button>
      )}
    </>
  );
}

function SeriesRows({ series }: { series: Series[] }) {
  return (
    <Table.ScrollContainer minWidth={640} scrollAreaProps={{ viewportProps: { tabIndex: 0, "aria-label": "changes" } }}>
      <Table verticalSpacing={4}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">what</Table.Th>
            {["now", "low", "high", "changes", "last change"].map((name) => (
              <Table.Th key={name} scope="col" className="number">
                {name}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {series.map((one) => (
            <Table.Tr key={one.name}>
              <Table.Td style={{ whiteSpace: "nowrap" }}>{one.name}</Table.Td>
              {[one.now, one.low, one.high].map((price, at) => (
                <Table.Td key={at} className="number">
                  {usd(price)}
                </Table.Td>
              ))}
              <Table.Td className="number">{count(one.changes)}</Table.Td>
              <Table.Td className="number">
                <When at={one.last} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
