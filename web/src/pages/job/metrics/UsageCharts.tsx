import { SimpleGrid } from "@mantine/core";
import { LineChart } from "@/charts/LineChart";
import { Panel } from "@/parts/Panel";
import { bytes } from "@/parts/words";
import { aligned, placeOf, valueOf } from "@/pages/job/metrics/series";
import { nameOf, scaleOf, usageGroups, type UsageGroup } from "@/pages/job/metrics/usage";
import { chartAnswer, useChart, type ChartAsked } from "@/pages/job/queries";

interface Props {
  jobId: string;
  asked: Omit<ChartAsked, "of">;
  isOver: boolean;
}

export function UsageCharts({ jobId, asked, isOver }: Props) {
  const wanted: ChartAsked = { ...asked, of: "usage" };
  const usage = useChart(jobId, wanted, isOver);
  const groups = usageGroups(usage.data?.series ?? []);
  if (groups.length === 0) return null;
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="sm" data-answer={chartAnswer(jobId, wanted)}>
      {groups.map((group) => (
        <GroupChart key={group.title} group={group} />
      ))}
    </SimpleGrid>
  );
}

const WRITE: Record<UsageGroup["unit"], (value: number | null | undefined) => string> = {
  percent: (value) => (value == null ? "–" : `${Math.round(value)} %`),
  bytes,
  rate: (value) => (value == null ? "–" : `${bytes(value)}/s`),
  plain: (value) => (value == null ? "–" : String(value)),
};

function GroupChart({ group }: { group: UsageGroup }) {
  const { x, values } = aligned(
    group.series.map(({ name, points }) => ({
      name,
      x: points.map((point) => placeOf(point, true) ?? 0),
      values: points.map((point) => {
        const value = valueOf(point);
        return value === null ? null : value * scaleOf(name);
      }),
    })),
  );
  const lines = group.series.map(({ name }, at) => ({ name: nameOf(name), values: values[at] ?? [] }));
  return (
    <Panel title={group.title}>
      <LineChart
        label={`${group.title} of its machines`}
        x={x}
        isTime
        lines={lines}
        write={WRITE[group.unit]}
        {...(group.unit === "percent" && { range: [0, 100] })}
        isBinary={group.unit === "bytes" || group.unit === "rate"}
        height={180}
      />
    </Panel>
  );
}
