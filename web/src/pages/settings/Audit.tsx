/** Who changed what, the newest first. */
import { Alert, Badge, Button, Group, Table, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { ErrorNote } from "@/parts/ErrorNote";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { When } from "@/parts/When";
import { useAddress } from "@/parts/address";
import { count } from "@/parts/words";
import { isAdmin, useMe } from "@/session/me";
import { auditCommand, detailWords } from "@/pages/settings/audit-words";
import { useAudit, useSeal, type AuditFilter } from "@/pages/settings/queries";

const COLUMNS = [{ title: "Line", isNumber: true }, "When", "Who", "Did", "To", "Details"];

export function Audit() {
  const [search, change] = useAddress();
  const filter: AuditFilter = { user: search["user"], team: search["team"], subject: search["subject"] };
  const query = useAudit(filter);
  return (
    <Panel title="Audit" aside={<Command line={auditCommand(filter)} />}>
      <Filters filter={filter} onChange={(next) => change({ ...next })} />
      {isAdmin(useMe().data) && <Seal />}
      <Loaded query={query} lines={8}>
        {({ pages }) => {
          const lines = pages.flatMap((page) => page.items);
          if (lines.length === 0) return <Empty title="No line fits" command="crucible audit" />;
          return (
            <Rows label="Lines of the audit log" columns={COLUMNS} minWidth={1080}>
              {lines.map((line) => (
                <Table.Tr key={line.seq}>
                  <Table.Td className="number">{line.seq}</Table.Td>
                  <Table.Td style={{ whiteSpace: "nowrap" }}>
                    <When at={line.at} />
                  </Table.Td>
                  <Table.Td>{line.user_id}</Table.Td>
                  <Table.Td>
                    <Badge variant="light" color="gray" tt="none" miw="max-content">
                      {line.action}
                    </Badge>
                  </Table.Td>
                  <Table.Td className="mono" style={{ overflowWrap: "anywhere" }}>
                    {line.subject}
                  </Table.Td>
                  <Table.Td className="dim" style={{ overflowWrap: "anywhere" }}>
                    {detailWords(line.details)}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Rows>
          );
        }}
      </Loaded>
      {query.hasNextPage && (
        <Group justify="center">
          <Button
            size="xs"
            variant="default"
            loading={query.isFetchingNextPage}
            onClick={() => void query.fetchNextPage()}
          >
            Older lines
          </Button>
        </Group>
      )}
    </Panel>
  );
}

/** Asked when somebody has finished writing, not letter by letter. */
function Filters({ filter, onChange }: { filter: AuditFilter; onChange: (filter: AuditFilter) => void }) {
  const field = (name: keyof AuditFilter, label: string, placeholder: string) => (
    <TextInput
      name={name}
      key={`${name} ${filter[name] ?? ""}`}
      size="xs"
      label={label}
      placeholder={placeholder}
      defaultValue={filter[name] ?? ""}
    />
  );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const data = new FormData(event.currentTarget);
        const said = (name: string) => String(data.get(name) ?? "").trim() || undefined;
        onChange({ user: said("user"), team: said("team"), subject: said("subject") });
      }}
    >
      <Group align="flex-end" gap="xs">
        {field("user", "Who", "ada")}
        {field("team", "Team", "vision")}
        {field("subject", "To what", "team:vision")}
        <Button type="submit" size="xs" variant="default">
          Filter
        </Button>
        <Button
          size="xs"
          variant="subtle"
          onClick={() => onChange({ user: undefined, team: undefined, subject: undefined })}
        >
          Clear
        </Button>
      </Group>
    </form>
  );
}

function Seal() {
  const seal = useSeal();
  const [isShown, setIsShown] = useState(false);
  return (
    <Group gap="xs">
      <Button
        size="xs"
        variant="default"
        loading={seal.isPending}
        onClick={() => {
          setIsShown(true);
          seal.mutate();
        }}
      >
        Is the log whole?
      </Button>
      {isShown && seal.error && <ErrorNote error={seal.error} />}
      {isShown && seal.data && (
        <Alert color={seal.data.broken === null ? "green" : "red"} variant="light" p="xs" role="status">
          <Text size="sm" style={{ overflowWrap: "anywhere" }}>
            {seal.data.broken === null
              ? `whole up to line ${count(seal.data.lines)}, whose seal is ${seal.data.digest || "none"}`
              : `line ${seal.data.broken} was altered, or one before it removed`}
          </Text>
        </Alert>
      )}
    </Group>
  );
}
