/** Providers side by side: what so many GPUs cost there, and how each of them bills, starts and fails. */
import { Table, Text } from "@mantine/core";
import type { Quote, Quoted, Side } from "@/pages/compare/quotes";
import { PriceAge } from "@/pages/prices/PriceAge";
import { CheckIcon } from "@/parts/icons";
import { duration, percent, usd } from "@/parts/words";

const FIGURES = ["$/h", "total"];

export function CompareTable({ rows }: { rows: Quoted[] }) {
  return (
    <Table.ScrollContainer
      minWidth={1060}
      scrollAreaProps={{ viewportProps: { tabIndex: 0, "aria-label": "providers side by side" } }}
    >
      <Table verticalSpacing={5} horizontalSpacing={8} highlightOnHover fz="sm" style={{ whiteSpace: "nowrap" }}>
        <Table.Thead>
          <Table.Tr>
            {["provider", "market", "machines", "where"].map((name) => (
              <Table.Th key={name} scope="col">
                {name}
              </Table.Th>
            ))}
            {FIGURES.map((name) => (
              <Table.Th key={name} scope="col" className="number">
                {name}
              </Table.Th>
            ))}
            {["availability", "starts in", "billed", "price"].map((name) => (
              <Table.Th key={name} scope="col">
                {name}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Row key={row.id} row={row} />
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function Row({ row: { side, market, quote } }: { row: Quoted }) {
  return (
    <Table.Tr>
      <Table.Td>
        {side.provider} {side.is_enabled && <Enabled />}
      </Table.Td>
      <Table.Td>{market}</Table.Td>
      <Table.Td>
        {quote.count} × {quote.instance_type}
        <Text size="xs" className="dim">
          {quote.gpus} {quote.gpu}
        </Text>
      </Table.Td>
      <Table.Td>{quote.zone || quote.region}</Table.Td>
      <Table.Td className="number">{usd(quote.price_per_hour_usd)}</Table.Td>
      <Table.Td className="number">{usd(quote.total_usd)}</Table.Td>
      <Table.Td style={{ whiteSpace: "normal", maxWidth: 160 }}>{availability(quote)}</Table.Td>
      <Table.Td>{duration(side.start_s)}</Table.Td>
      <Table.Td style={{ whiteSpace: "normal", maxWidth: 170 }}>{billing(side)}</Table.Td>
      <Table.Td>
        <PriceAge asOf={quote.as_of} isStale={quote.is_stale} source={quote.source} />
      </Table.Td>
    </Table.Tr>
  );
}

/** What is known of getting one and of keeping it. */
function availability(quote: Quote): string {
  const had = quote.availability === null ? [] : [`${percent(quote.availability)} of the time`];
  const lost = quote.interruptions_per_hour ? [`lost ${percent(quote.interruptions_per_hour, 1)} an hour`] : [];
  return [...had, ...lost].join(", ") || "not known";
}

function billing(side: Side): string {
  const unit = side.billing_unit_s === 1 ? "by the second" : `per ${duration(side.billing_unit_s)}`;
  return side.billing_minimum_s > side.billing_unit_s ? `${unit}, at least ${duration(side.billing_minimum_s)}` : unit;
}

function Enabled() {
  return (
    <span
      role="img"
      aria-label="enabled on this server"
      title="enabled on this server"
      style={{ color: "var(--good)" }}
    >
      <CheckIcon size={14} />
    </span>
  );
}
