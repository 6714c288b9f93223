/** How long each kind of thing is kept, and what would go now. */
import { Button, Group, Table, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { api, told, type Shape } from "@/api/client";
import { Confirm } from "@/parts/Confirm";
import { ErrorNote } from "@/parts/ErrorNote";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { When } from "@/parts/When";
import { bytes, count, plural } from "@/parts/words";
import { useChange, useRetention } from "@/pages/settings/queries";

type Kept = Shape<"KeptKind">;
const COLUMNS = [
  "What",
  "Kept",
  "Said by",
  { title: "Removed so far", isNumber: true },
  "Last run",
  { title: "Actions", isOnlyHeard: true },
];

export function Retention() {
  const query = useRetention();
  const [changing, setChanging] = useState<Kept | null>(null);
  const [isAsking, setIsAsking] = useState(false);
  const run = useChange(
    (dry_run: boolean) => told(api.POST("/v1/retention/run", { body: { dry_run } })),
    [["retention"]],
    () => setIsAsking(false),
  );
  const aside = (
    <Group gap="xs">
      <Button size="xs" variant="default" loading={run.isPending} onClick={() => run.mutate(true)}>
        What would go now?
      </Button>
      <Button size="xs" color="red" variant="light" onClick={() => setIsAsking(true)}>
        Remove it now
      </Button>
    </Group>
  );
  return (
    <Panel title="Retention" aside={aside}>
      <Text size="sm" className="dim">
        Every hour a server removes what is older than this. What was charged is kept for ever.
      </Text>
      {run.data && <Ran ran={run.data} />}
      {run.error && !isAsking && <ErrorNote error={run.error} />}
      <Loaded query={query}>
        {({ items }) => (
          <Rows label="How long things are kept" columns={COLUMNS} minWidth={640}>
            {items.map((kind) => (
              <Table.Tr key={kind.what}>
                <Table.Td>{kind.what}</Table.Td>
                <Table.Td>{kind.days === null ? "for ever" : plural(kind.days, "day")}</Table.Td>
                <Table.Td>{kind.set_by}</Table.Td>
                <Table.Td className="number">{count(kind.removed)}</Table.Td>
                <Table.Td>
                  <When at={kind.ran_at} />
                </Table.Td>
                <Table.Td ta="right">
                  <Button
                    size="compact-xs"
                    variant="default"
                    aria-label={`Change how long ${kind.what} are kept`}
                    onClick={() => setChanging(kind)}
                  >
                    Change
                  </Button>
                </Table.Td>
              </Table.Tr>
            ))}
          </Rows>
        )}
      </Loaded>
      {changing && <Changing key={changing.what} kind={changing} onClose={() => setChanging(null)} />}
      <Confirm
        title="Remove what is old enough"
        action="Remove"
        command="crucible retention run"
        isOpen={isAsking}
        isPending={run.isPending}
        error={run.error}
        onClose={() => setIsAsking(false)}
        onConfirm={() => run.mutate(false)}
      >
        What goes cannot be brought back. Look first what would go.
      </Confirm>
    </Panel>
  );
}

function Ran({ ran }: { ran: Shape<"Ran"> }) {
  const some = Object.entries(ran.removed).filter(([, many]) => many > 0);
  const words = some.map(([what, many]) => `${ran.at_least.includes(what) ? "at least " : ""}${count(many)} ${what}`);
  return (
    <Text size="sm" role="status">
      {words.length === 0 ? "Nothing is old enough." : `${ran.dry_run ? "Would go" : "Gone"}: ${words.join(", ")}.`}
      {ran.freed_bytes > 0 && ` ${bytes(ran.freed_bytes)}.`}
    </Text>
  );
}

function Changing({ kind, onClose }: { kind: Kept; onClose: () => void }) {
  const [age, setAge] = useState(kind.days === null ? "never" : `${kind.days}d`);
  const change = useChange(
    () => told(api.PUT("/v1/retention/{what}", { params: { path: { what: kind.what } }, body: { age } })),
    [["retention"]],
    onClose,
  );
  return (
    <Confirm
      title={`How long ${kind.what} are kept`}
      action="Keep them so long"
      command={`crucible retention set ${kind.what} ${age}`}
      isOpen
      isPending={change.isPending}
      error={change.error}
      onClose={onClose}
      onConfirm={() => change.mutate(undefined)}
    >
      <TextInput
        label="Age"
        description="90d, 12w, 2y, never (for ever) or default"
        data-autofocus
        value={age}
        onChange={(event) => setAge(event.currentTarget.value)}
      />
    </Confirm>
  );
}
