import { Kbd, Modal, Table } from "@mantine/core";
import { DESTINATIONS } from "@/shell/nav";

const KEYS: [string[], string][] = [
  [["⌘ K", "Ctrl K"], "go to a page or a job"],
  [["?"], "this list"],
  [["j", "k"], "down and up in a list"],
  [["Enter"], "open what is chosen"],
  [["/"], "search on this page"],
];

export default function KeysHelp({ onClose }: { onClose: () => void }) {
  const rows: [string[], string][] = [
    ...KEYS,
    ...DESTINATIONS.map((one): [string[], string] => [[`g ${one.key}`], one.title]),
  ];
  return (
    <Modal opened onClose={onClose} title="Keys">
      <Table>
        <Table.Tbody>
          {rows.map(([keys, words]) => (
            <Table.Tr key={words}>
              <Table.Td>
                {keys.map((key) => (
                  <Kbd key={key} mr={4}>
                    {key}
                  </Kbd>
                ))}
              </Table.Td>
              <Table.Td>{words}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Modal>
  );
}
