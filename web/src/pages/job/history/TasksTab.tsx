import { Anchor, Stack, Table } from "@mantine/core";
import { Command } from "@/parts/Command";
import { Loaded } from "@/parts/Loaded";
import { useAddress } from "@/parts/address";
import { StateBadge } from "@/parts/StateBadge";
import { When } from "@/parts/When";
import { DASH, percent, significant } from "@/parts/words";
import type { TabProps } from "@/pages/job/JobTabs";
import { useTasks } from "@/pages/job/queries";

/** What each task was given and how far it is; choosing one shows its log. */
export default function TasksTab({ job, isOver }: TabProps) {
  const tasks = useTasks(job.id, true, isOver);
  const [, , goTo] = useAddress();
  return (
    <Stack gap="sm">
      <Loaded query={tasks} lines={6}>
        {({ items }) => (
          <Table.ScrollContainer minWidth={1000} mah="70vh" tabIndex={0} aria-label="tasks">
            <Table stickyHeader>
              <Table.Thead>
                <Table.Tr>
                  {["task", "phase", "given", "value", "progress", "attempts", "where", "began"].map((name) => (
                    <Table.Th key={name}>{name}</Table.Th>
                  ))}
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {items.map((one) => (
                  <Table.Tr key={one.index}>
                    <Table.Td style={{ whiteSpace: "nowrap" }}>
                      <Anchor
                        component="button"
                        size="sm"
                        onClick={() => goTo({ task: one.index ? String(one.index) : undefined, tab: undefined })}
                      >
                        task {one.index}
                      </Anchor>
                    </Table.Td>
                    <Table.Td>
                      <StateBadge state={one.verdict ?? one.phase} />
                    </Table.Td>
                    <Table.Td className="mono">{given(one.params)}</Table.Td>
                    <Table.Td>{significant(one.value ?? one.value_so_far)}</Table.Td>
                    <Table.Td>{percent(one.fraction)}</Table.Td>
                    <Table.Td>{one.attempts}</Table.Td>
                    <Table.Td style={{ whiteSpace: "nowrap" }}>
                      {one.where ? `${one.where.provider} ${one.where.instance_type}` : DASH}
                    </Table.Td>
                    <Table.Td style={{ whiteSpace: "nowrap" }}>
                      <When at={one.started_at} />
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
        )}
      </Loaded>
      <Command line={`crucible tasks ${job.id}`} />
    </Stack>
  );
}

function given(params: Record<string, unknown> | null): string {
  return Object.entries(params ?? {})
    .map(([name, value]) => `${name}=${written(value)}`)
    .join(" ");
}

function written(value: unknown): string {
  if (typeof value === "number") return significant(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
