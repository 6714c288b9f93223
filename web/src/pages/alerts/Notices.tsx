/** What there was to hear, the newest first, told to somebody or not. */
import { Button, Group, MultiSelect, Select, Stack } from "@mantine/core";
import { Notice } from "@/pages/alerts/Notice";
import { useNotices } from "@/pages/alerts/queries";
import { KINDS, LEVELS } from "@/pages/alerts/words";
import { useAddress } from "@/parts/address";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { ErrorNote } from "@/parts/ErrorNote";
import { Stale, Waiting } from "@/parts/Loaded";

export function Notices() {
  const [{ kind = "", least }, change] = useAddress();
  const level = LEVELS.find((one) => one === least) ?? "info";
  return (
    <Stack>
      <Group align="flex-end" justify="space-between">
        <Group align="flex-end" gap="sm">
          <Select
            label="At least"
            w={130}
            data={LEVELS}
            value={level}
            allowDeselect={false}
            onChange={(value) => change({ least: value === "info" ? undefined : (value ?? undefined) })}
          />
          <MultiSelect
            label="Kinds"
            miw={180}
            data={KINDS}
            value={kind.split(",").filter(Boolean)}
            placeholder={kind ? undefined : "all"}
            clearable
            clearButtonProps={{ "aria-label": "all kinds" }}
            onChange={(value) => change({ kind: value.join(",") })}
          />
        </Group>
        <Command
          line={`crucible alert history${level === "info" ? "" : ` --least ${level}`}${kind && ` --kind ${kind}`}`}
        />
      </Group>
      <Feed kind={kind} level={level} />
    </Stack>
  );
}

function Feed({ kind, level }: { kind: string; level: (typeof LEVELS)[number] }) {
  const query = useNotices(kind, level);
  const { data, error, isFetchingNextPage } = query;
  if (data === undefined) {
    return error ? <ErrorNote error={error} onRetry={() => void query.refetch()} /> : <Waiting lines={6} />;
  }
  const items = data.pages.flatMap((page) => page.items);
  return (
    <Stack gap="xs">
      {error && <Stale at={query.dataUpdatedAt} />}
      {items.length === 0 && (
        <Empty title="Nothing to hear of" command="crucible alert add failures --kind failure,deadline --to me">
          Failures, lateness, budgets, stalls, providers, leaks and prices are told here.
        </Empty>
      )}
      {items.map((notice) => (
        <Notice key={notice.seq} notice={notice} />
      ))}
      {query.hasNextPage && (
        <Button variant="default" loading={isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          Show older ones
        </Button>
      )}
    </Stack>
  );
}
