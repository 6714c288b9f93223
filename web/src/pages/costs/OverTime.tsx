/** Spend day by day or hour by hour, by whatever costs are told apart by. */
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { StackedColumns } from "@/charts/StackedColumns";
import { commandOf, type Asked, type Step } from "@/pages/costs/asked";
import { reportQuery } from "@/pages/costs/queries";
import { stacksOf } from "@/pages/costs/stacks";
import { Command } from "@/parts/Command";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Told } from "@/parts/Told";
import { count, usd } from "@/parts/words";

export function OverTime({ asked, title }: { asked: Asked; title?: string }) {
  const { by, step } = asked;
  const both = `${step},${by}`;
  const asking = reportQuery(asked, both);
  const query = useQuery(asking);
  return (
    <Panel title={title ?? `Per ${step}`} aside={<Command line={commandOf("costs", both, asked)} />}>
      <Loaded query={query} lines={8}>
        {({ rows, from_at, to_at, at, left_out }) => {
          const until = new Date(Math.min(Date.parse(to_at), Date.parse(at)));
          const { names, columns } = stacksOf(rows, by, step, new Date(from_at), until);
          return (
            <div data-answer={asking.answer}>
              <StackedColumns
                label={`spent per ${step} by ${by}`}
                names={names}
                columns={columns}
                write={usd}
                shorten={(name) => shortened(name, step)}
              />
              {left_out > 0 && (
                <Text size="sm">
                  <Told at="left_out" value={left_out} write={count} /> more rows are only in the total: choose a
                  shorter period.
                </Text>
              )}
            </div>
          );
        }}
      </Loaded>
    </Panel>
  );
}

function shortened(name: string, step: Step): string {
  if (step === "hour") return `${name.slice(11, 13)} h`;
  const at = new Date(`${name}T00:00Z`);
  return at.toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
}
