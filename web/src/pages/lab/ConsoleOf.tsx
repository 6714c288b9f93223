/** What a machine printed, its end. */
import { Code, Modal, Stack, Text } from "@mantine/core";
import { Command } from "@/parts/Command";
import { Loaded } from "@/parts/Loaded";
import { useConsole } from "@/pages/lab/queries";

export function ConsoleOf({ machine, onClose }: { machine: string | null; onClose: () => void }) {
  const query = useConsole(machine);
  return (
    <Modal
      opened={machine !== null}
      onClose={onClose}
      title={`Console of ${machine ?? ""}`}
      size="xl"
      closeButtonProps={{ "aria-label": "close" }}
    >
      <Stack>
        <Command line={`crucible lab console ${machine ?? ""}`} />
        <Loaded query={query}>
          {({ text, is_cut }) => (
            <>
              {is_cut && <Text size="xs">Its beginning is left out.</Text>}
              <Code block tabIndex={0} mah={420} style={{ overflow: "auto" }} aria-label="output of the machine">
                {text || "nothing yet"}
              </Code>
            </>
          )}
        </Loaded>
      </Stack>
    </Modal>
  );
}
