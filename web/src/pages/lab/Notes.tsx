/** What happens in the Lab, as it happens, the newest first. */
import { Badge, Table, Text } from "@mantine/core";
import { Command } from "@/parts/Command";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { useNotes } from "@/pages/lab/queries";

const COLOURS: Record<string, string> = {
  launched: "blue",
  booted: "green",
  fault: "red",
  refused: "red",
  notice: "orange",
  taken: "orange",
  ended: "gray",
};

export function Notes() {
  const query = useNotes();
  return (
    <Panel title="Events" aside={<Command line="crucible lab events -f" />}>
      <Loaded query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Text size="sm" className="dim">
              Nothing has happened yet.
            </Text>
          ) : (
            <Rows
              label="Events of the Lab"
              columns={["Lab time", "What", "Whom", "Note"]}
              minWidth={620}
              maxHeight={360}
            >
              {items.toReversed().map((note) => (
                <Table.Tr key={note.number}>
                  <Table.Td style={{ whiteSpace: "nowrap" }}>
                    <time dateTime={note.at}>{note.at.slice(11, 19)}</time>
                  </Table.Td>
                  <Table.Td>
                    <Badge variant="light" color={COLOURS[note.what] ?? "gray"} tt="none" miw="max-content">
                      {note.what}
                    </Badge>
                  </Table.Td>
                  <Table.Td className="mono" style={{ whiteSpace: "nowrap" }}>
                    {note.subject}
                  </Table.Td>
                  <Table.Td>{note.note}</Table.Td>
                </Table.Tr>
              ))}
            </Rows>
          )
        }
      </Loaded>
    </Panel>
  );
}
