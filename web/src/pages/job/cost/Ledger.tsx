/** Every stretch of every machine at its price, and every line of the ledger, to the micro-dollar. */
import { SegmentedControl, Table } from "@mantine/core";
import { useState } from "react";
import { Panel } from "@/parts/Panel";
import { Told } from "@/parts/Told";
import { When } from "@/parts/When";
import { count } from "@/parts/words";
import type { Costs } from "@/pages/job/cost/CostTab";
import { exact, KINDS, rateWords } from "@/pages/job/cost/parts";

const MOST = 500;

export function Ledger({ costs }: { costs: Costs }) {
  const [shown, setShown] = useState("stretches");
  const rows = shown === "stretches" ? costs.intervals.length : costs.postings.length;
  return (
    <Panel
      title="To the last digit"
      aside={
        <SegmentedControl
          size="xs"
          aria-label="what is listed"
          value={shown}
          onChange={setShown}
          data={[
            { value: "stretches", label: <Counted words="stretches" at="intervals.length" many={costs.intervals} /> },
            { value: "ledger", label: <Counted words="ledger" at="postings.length" many={costs.postings} /> },
          ]}
        />
      }
    >
      <Table.ScrollContainer minWidth={760} mah={420} tabIndex={0} aria-label={shown}>
        <Table stickyHeader>
          {rows > MOST && (
            <Table.Caption>
              the first {MOST} of {rows}; crucible costs has all of them
            </Table.Caption>
          )}
          {shown === "stretches" ? <Stretches costs={costs} /> : <Postings costs={costs} />}
        </Table>
      </Table.ScrollContainer>
    </Panel>
  );
}

function Counted({ words, at, many }: { words: string; at: string; many: unknown[] }) {
  return (
    <>
      {words} (<Told at={at} value={many.length} write={count} />)
    </>
  );
}

function Head({ names, last }: { names: string[]; last: string }) {
  return (
    <Table.Thead>
      <Table.Tr>
        {names.map((name) => (
          <Table.Th key={name}>{name}</Table.Th>
        ))}
        <Table.Th className="number">{last}</Table.Th>
      </Table.Tr>
    </Table.Thead>
  );
}

function Stretches({ costs }: { costs: Costs }) {
  return (
    <>
      <Head names={["machine", "kind", "from", "to", "rate"]} last="amount" />
      <Table.Tbody>
        {costs.intervals.slice(0, MOST).map((one, at) => (
          <Table.Tr key={at}>
            <Table.Td className="mono">{one.machine_id}</Table.Td>
            <Table.Td>{KINDS[one.kind] ?? one.kind}</Table.Td>
            <Table.Td>
              <When at={one.from_at} exact />
            </Table.Td>
            <Table.Td>{one.to_at ? <When at={one.to_at} exact /> : "open"}</Table.Td>
            <Table.Td>
              <Told at={`intervals.${at}.rate_usd`} value={one.rate_usd} write={(rate) => rateWords(rate, one.per_s)} />
            </Table.Td>
            <Table.Td className="number">
              <Told at={`intervals.${at}.amount_microusd`} value={one.amount_microusd} write={exact} />
              {one.is_estimate && " (estimate)"}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </>
  );
}

function Postings({ costs }: { costs: Costs }) {
  return (
    <>
      <Head names={["at", "kind", "for", "account"]} last="amount" />
      <Table.Tbody>
        {costs.postings.slice(0, MOST).map((one, at) =>
          one.entries.map((entry, line) => (
            <Table.Tr key={`${one.id} ${line}`}>
              <Table.Td>{line === 0 && <When at={one.at} exact />}</Table.Td>
              <Table.Td>{line === 0 && (KINDS[one.kind] ?? one.kind)}</Table.Td>
              <Table.Td>{line === 0 && <Told at={`postings.${at}.memo`} value={one.memo} />}</Table.Td>
              <Table.Td className="mono">{entry.account}</Table.Td>
              <Table.Td className="number">
                <Told
                  at={`postings.${at}.entries.${line}.amount_microusd`}
                  value={entry.amount_microusd}
                  write={exact}
                />
              </Table.Td>
            </Table.Tr>
          )),
        )}
      </Table.Tbody>
    </>
  );
}
