/** The parts of a job's page, one at a time; which one is in the address. What a part is made of is fetched when it is
 * first looked at. */
import { Group, NativeSelect, Tabs } from "@mantine/core";
import { lazy, Suspense, type ComponentType } from "react";
import { Waiting } from "@/parts/Loaded";
import { useAddress } from "@/parts/address";
import { TabStrip } from "@/parts/TabStrip";
import type { LiveJob } from "@/pages/job/live/live-job";
import LogTab from "@/pages/job/log/LogTab";
import { useTasks, type Job } from "@/pages/job/queries";

export interface TabProps {
  job: Job;
  task: number;
  isOver: boolean;
}

const PARTS: Record<string, ComponentType<TabProps>> = {
  metrics: lazy(() => import("@/pages/job/metrics/MetricsTab")),
  cost: lazy(() => import("@/pages/job/cost/CostTab")),
  timeline: lazy(() => import("@/pages/job/timeline/TimelineTab")),
  attempts: lazy(() => import("@/pages/job/history/AttemptsTab")),
  checkpoints: lazy(() => import("@/pages/job/history/CheckpointsTab")),
  events: lazy(() => import("@/pages/job/history/EventsTab")),
  spec: lazy(() => import("@/pages/job/spec/SpecTab")),
  tasks: lazy(() => import("@/pages/job/history/TasksTab")),
};

interface Props extends TabProps {
  stream: LiveJob;
}

export function JobTabs({ stream, ...props }: Props) {
  const [params, , goTo] = useAddress();
  const hasTasks = props.job.execution_mode !== "single_cluster" && props.job.steps === 0;
  const names = ["log", ...Object.keys(PARTS).filter((name) => name !== "tasks" || hasTasks)];
  const asked = params["tab"] ?? "log";
  const tab = names.includes(asked) ? asked : "log";
  const Part = PARTS[tab];
  return (
    <Tabs value={tab} onChange={(to) => goTo({ tab: to === "log" ? undefined : (to ?? undefined) })}>
      <Group gap="xs" align="center">
        <TabStrip value={tab}>
          {names.map((name) => (
            <Tabs.Tab key={name} value={name}>
              {name.charAt(0).toUpperCase() + name.slice(1)}
            </Tabs.Tab>
          ))}
        </TabStrip>
        {hasTasks && <TaskChoice {...props} onChange={(task) => goTo({ task: task ? String(task) : undefined })} />}
      </Group>
      <Tabs.Panel value={tab} pt="sm">
        <Suspense fallback={<Waiting lines={4} />}>
          {Part ? <Part {...props} /> : <LogTab key={props.task} job={stream} isOver={props.isOver} />}
        </Suspense>
      </Tabs.Panel>
    </Tabs>
  );
}

function TaskChoice({ job, task, isOver, onChange }: TabProps & { onChange: (task: number) => void }) {
  const tasks = useTasks(job.id, true, isOver);
  return (
    <NativeSelect
      size="xs"
      miw={110}
      aria-label="task"
      value={task}
      onChange={(event) => onChange(Number(event.currentTarget.value))}
      data={(tasks.data?.items ?? [{ index: task, phase: "" }]).map((one) => ({
        value: String(one.index),
        label: `task ${one.index}${one.phase && ` · ${one.phase}`}`,
      }))}
    />
  );
}
