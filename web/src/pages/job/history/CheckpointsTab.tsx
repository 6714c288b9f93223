import { Badge, Button, Group, Stack, Table } from "@mantine/core";
import { useState } from "react";
import { api, told, type Shape } from "@/api/client";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { Told } from "@/parts/Told";
import { When } from "@/parts/When";
import { bytes, count, significant } from "@/parts/words";
import { useMe } from "@/session/me";
import { Asked } from "@/pages/job/actions/Asked";
import { Verify } from "@/pages/job/history/Verify";
import type { TabProps } from "@/pages/job/JobTabs";
import { answerOf, useCheckpoints } from "@/pages/job/queries";
import { mayChangeJob } from "@/pages/job/rights";

type Checkpoint = Shape<"CheckpointItem">;

export default function CheckpointsTab({ job, task, isOver }: TabProps) {
  const checkpoints = useCheckpoints(job.id, task, isOver);
  const [removed, setRemoved] = useState<number | null>(null);
  const may = mayChangeJob(useMe().data, job);
  return (
    <Stack gap="sm">
      <Loaded query={checkpoints}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="There is no checkpoint" command={`crucible events ${job.id} --all`}>
              A program saves one with train.save_checkpoint(path, step), of the package crucible.
            </Empty>
          ) : (
            <Rows
              items={items}
              jobId={job.id}
              task={task}
              {...(may && { onRemove: (step: number) => setRemoved(step) })}
            />
          )
        }
      </Loaded>
      <Group gap="md">
        <Command line={`crucible checkpoints get ${job.id} -d ./weights`} />
        <Command line={`crucible checkpoints verify ${job.id} --all`} />
      </Group>
      {removed !== null && (
        <Asked
          title={`Remove the checkpoint of step ${count(removed)}?`}
          about="It is gone for good. The newest two of a job that goes on from them are refused."
          command={`crucible checkpoints rm ${job.id} ${removed}`}
          label="Remove"
          run={() =>
            told(
              api.DELETE("/v1/jobs/{job_id}/checkpoints/{step}", {
                params: { path: { job_id: job.id, step: String(removed) }, query: { task } },
              }),
            )
          }
          onClose={() => setRemoved(null)}
        />
      )}
    </Stack>
  );
}

interface RowsProps {
  items: Checkpoint[];
  jobId: string;
  task: number;
  /** Missing for who may only look. */
  onRemove?: (step: number) => void;
}

function Rows({ items, jobId, task, onRemove }: RowsProps) {
  return (
    <Table.ScrollContainer
      minWidth={760}
      tabIndex={0}
      aria-label="checkpoints"
      data-answer={`${answerOf(jobId, "checkpoints")}?task=${task}`}
    >
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th className="number">step</Table.Th>
            <Table.Th className="number">size</Table.Th>
            {["saved", "attempt", "kept in", "said of it", ""].map((name) => (
              <Table.Th key={name}>{name}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {newestFirst(items).map(({ one, at }) => (
            <Table.Tr key={`${one.job_id} ${one.step}`}>
              <Table.Td className="number">
                <Told at={`${at}.step`} value={one.step} write={count} />
              </Table.Td>
              <Table.Td className="number">
                <Told at={`${at}.size_bytes`} value={one.size_bytes} write={bytes} />
              </Table.Td>
              <Table.Td>
                <When at={one.created_at} />
              </Table.Td>
              <Table.Td>
                <Told at={`${at}.attempt`} value={one.attempt} write={count} />
                {one.job_id !== jobId && <span className="dim mono"> of {one.job_id.slice(0, 8)}</span>}
              </Table.Td>
              <Table.Td>
                <Group gap={6} wrap="nowrap">
                  <span title={one.uri}>{one.kept_in}</span>
                  {one.is_latest && (
                    <Badge variant="light" tt="none">
                      newest
                    </Badge>
                  )}
                </Group>
              </Table.Td>
              <Table.Td className="mono">
                <Said metadata={one.metadata} at={`${at}.metadata`} />
              </Table.Td>
              <Table.Td>
                <Group gap="xs" wrap="nowrap" justify="flex-end">
                  <Verify jobId={jobId} task={task} step={one.step} />
                  {onRemove && (
                    <Button size="compact-sm" variant="default" onClick={() => onRemove(one.step)}>
                      Remove…
                    </Button>
                  )}
                </Group>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

/** With where each is in the answer. */
function newestFirst(items: Checkpoint[]): { one: Checkpoint; at: string }[] {
  return items.map((one, place) => ({ one, at: `items.${place}` })).reverse();
}

function Said({ metadata, at }: { metadata: Record<string, unknown>; at: string }) {
  return Object.entries(metadata).map(([name, value], place) => (
    <span key={name}>
      {place > 0 && ", "}
      {name}{" "}
      {typeof value === "number" ? (
        <Told at={`${at}.${name}`} value={value} write={significant} />
      ) : (
        <Told at={`${at}.${name}`} value={String(value)} />
      )}
    </span>
  ));
}
