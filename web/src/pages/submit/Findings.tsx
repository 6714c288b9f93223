/** The lines of the code that say what it needs, how its memory was reckoned, and which backends are out. */
import { Button, Code, Collapse, List, Stack, Table, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { Recommendations } from "@/pages/submit/queries";
import { plural } from "@/parts/words";

export function Findings({ said }: { said: Recommendations }) {
  const [isOpen, { toggle }] = useDisclosure(false);
  const counted = said.findings.filter((one) => one.counts);
  return (
    <div>
      <Button size="compact-xs" variant="subtle" onClick={toggle} aria-expanded={isOpen}>
        {isOpen ? "Hide" : "Show"} what was found: {plural(counted.length, "finding")}
      </Button>
      <Collapse expanded={isOpen}>
        <Stack gap="sm" mt="xs">
          <Table.ScrollContainer
            minWidth={560}
            scrollAreaProps={{ viewportProps: { tabIndex: 0, "aria-label": "findings" } }}
          >
            <Table verticalSpacing={4}>
              <Table.Thead>
                <Table.Tr>
                  {["what", "value", "where", "line", "confidence"].map((name) => (
                    <Table.Th key={name} scope="col">
                      {name}
                    </Table.Th>
                  ))}
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {counted.map((one) => (
                  <Table.Tr key={`${one.what} ${one.file} ${one.line}`}>
                    <Table.Td>{one.what.replaceAll("_", " ")}</Table.Td>
                    <Table.Td>{String(one.value)}</Table.Td>
                    <Table.Td className="mono">
                      {one.file}:{one.line}
                    </Table.Td>
                    <Table.Td>
                      <Code>{one.evidence}</Code>
                    </Table.Td>
                    <Table.Td title={one.why}>{one.confidence}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
          {said.memory.length > 0 && (
            <List size="xs" className="mono">
              {said.memory.map((line) => (
                <List.Item key={line}>{line}</List.Item>
              ))}
            </List>
          )}
          {said.excluded.length > 0 && (
            <Text size="xs" className="dim">
              Out: {said.excluded.map(({ backend, reason }) => `${backend} (${reason})`).join("; ")}
            </Text>
          )}
        </Stack>
      </Collapse>
    </div>
  );
}
