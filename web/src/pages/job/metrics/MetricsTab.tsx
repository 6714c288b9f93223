import { Group, NativeSelect, SegmentedControl, SimpleGrid, Slider, Stack, Switch, Text } from "@mantine/core";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { numberOf, useAddress } from "@/parts/address";
import type { TabProps } from "@/pages/job/JobTabs";
import { MetricChart, type Drawing } from "@/pages/job/metrics/MetricChart";
import { UsageCharts } from "@/pages/job/metrics/UsageCharts";
import { chartAnswer, useAttemptsOf, useChart, type ChartAsked } from "@/pages/job/queries";

export default function MetricsTab({ job, task, isOver }: TabProps) {
  const [params, setParams] = useAddress();
  const { items: attempts } = useAttemptsOf(job, task, isOver);
  const ranks = new Set(attempts.flatMap((one) => one.ranks.map((each) => each.rank)));
  const rank = params["of"] === "all" ? null : (numberOf(params["of"]) ?? (ranks.size > 1 ? 0 : null));
  const asked: ChartAsked = { task, of: "metrics", rank };
  const chart = useChart(job.id, asked, isOver);
  const drawing: Drawing = {
    isTime: params["x"] === "time",
    weight: (numberOf(params["smooth"]) ?? 0) / 100,
    isLogarithmic: params["log"] === "1",
  };
  return (
    <Stack gap="sm">
      <Group gap="lg">
        <SegmentedControl
          size="xs"
          aria-label="horizontal axis"
          value={drawing.isTime ? "time" : "step"}
          onChange={(x) => setParams({ x: x === "time" ? x : undefined })}
          data={["step", "time"]}
        />
        <Group gap="xs">
          <Text size="xs" id="smoothing">
            Smoothing
          </Text>
          <Slider
            w={140}
            size="sm"
            max={99}
            label={(value) => `${value} %`}
            thumbLabel="smoothing"
            value={drawing.weight * 100}
            onChange={(value) => setParams({ smooth: value ? String(value) : undefined })}
          />
        </Group>
        <Switch
          size="xs"
          label="Log scale"
          checked={drawing.isLogarithmic}
          onChange={(event) => setParams({ log: event.currentTarget.checked ? "1" : undefined })}
        />
        {ranks.size > 1 && (
          <NativeSelect
            size="xs"
            aria-label="rank"
            value={rank === null ? "all" : String(rank)}
            onChange={(event) => setParams({ of: event.currentTarget.value })}
            data={[
              { value: "all", label: "all ranks" },
              ...[...ranks].sort((a, b) => a - b).map((one) => ({ value: String(one), label: `rank ${one}` })),
            ]}
          />
        )}
      </Group>
      <Loaded query={chart} lines={6}>
        {(found) =>
          found.series?.length ? (
            <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="sm" data-answer={chartAnswer(job.id, asked)}>
              {found.series.map((series, place) => (
                <MetricChart key={series.name} {...{ series, place, attempts, drawing }} />
              ))}
            </SimpleGrid>
          ) : (
            <Empty title="It has measured nothing yet" command={`crucible logs -f ${job.id}`}>
              A program tells what it measures with train.log(step, loss=loss), of the package crucible.
            </Empty>
          )
        }
      </Loaded>
      <UsageCharts jobId={job.id} asked={{ task, rank: null }} isOver={isOver} />
      <Command line={`crucible metrics ${job.id} -w`} />
    </Stack>
  );
}
