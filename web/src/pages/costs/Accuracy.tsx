/** How far estimates were from what jobs came to, once they had ended. */
import { Table, Text } from "@mantine/core";
import type { ReactNode } from "react";
import type { Shape } from "@/api/client";
import type { Asked } from "@/pages/costs/asked";
import { useAccuracy } from "@/pages/costs/queries";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Told } from "@/parts/Told";
import { When } from "@/parts/When";
import { count, percent } from "@/parts/words";

type Group = Shape<"AccuracyGroup">;

export function Accuracy({ asked }: { asked: Asked }) {
  const { query, answer } = useAccuracy(asked);
  return (
    <Panel title="Estimated against actual" aside={<Command line="crucible accuracy --by gpu" />}>
      <Loaded query={query}>
        {(report) =>
          report.jobs === 0 ? (
            <Empty title="No completed job had an estimate yet" command="crucible submit job.yaml --hours 2" />
          ) : (
            <div data-answer={answer}>
              <Text size="sm" className="dim" component="div">
                <Told at="jobs" value={report.jobs} write={count} /> completed {report.jobs === 1 ? "job" : "jobs"}{" "}
                since <When at={report.since} />. An error is a share of what happened: half of them were off by no more
                than the median.
              </Text>
              <Groups report={report} />
            </div>
          )
        }
      </Loaded>
    </Panel>
  );
}

const WHAT = ["hours", "cost"] as const;

function Groups({ report }: { report: Shape<"AccuracyReport"> }) {
  const within = (what: (typeof WHAT)[number]) => (
    <>
      Within <Told at={`overall.${what}.goal`} value={report.overall[what]?.goal} write={percent} />
    </>
  );
  const columns = [
    "Jobs",
    "Hours: median",
    "Nine of ten",
    within("hours"),
    "Cost: median",
    "Nine of ten",
    within("cost"),
  ];
  return (
    <Table.ScrollContainer minWidth={720} tabIndex={0} role="region" aria-label="estimated against actual">
      <Table verticalSpacing={6}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">GPU</Table.Th>
            {columns.map((column, at) => (
              <Table.Th key={at} scope="col" className="number">
                {column}
              </Table.Th>
            ))}
            <Table.Th scope="col" className="number">
              Below the upper end
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {report.groups.map((group, at) => (
            <Row
              key={at}
              name={<Told at={`groups.${at}.key.gpu`} value={group.key["gpu"]} />}
              group={group}
              at={`groups.${at}`}
            />
          ))}
        </Table.Tbody>
        <Table.Tfoot>
          <Row name="all" group={report.overall} at="overall" />
        </Table.Tfoot>
      </Table>
    </Table.ScrollContainer>
  );
}

function Row({ name, group, at }: { name: ReactNode; group: Group; at: string }) {
  return (
    <Table.Tr>
      <Table.Th scope="row">{name}</Table.Th>
      <Table.Td className="number">
        <Told at={`${at}.cost.count`} value={group.cost?.count} write={count} />
      </Table.Td>
      {WHAT.flatMap((what) =>
        (["median_error", "p90_error", "within"] as const).map((figure) => (
          <Table.Td key={what + figure} className="number">
            <Told at={`${at}.${what}.${figure}`} value={group[what]?.[figure]} write={percent} />
          </Table.Td>
        )),
      )}
      <Table.Td className="number">
        <Told at={`${at}.within_range`} value={group.within_range} write={percent} />
      </Table.Td>
    </Table.Tr>
  );
}
