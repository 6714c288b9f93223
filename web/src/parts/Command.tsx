/** The same on the command line, to copy: everything that this page does can be written down and done again. */
import { ActionIcon, Code, CopyButton, Group, Tooltip } from "@mantine/core";
import { CheckIcon, CopyIcon } from "@/parts/icons";

export function Command({ line }: { line: string }) {
  return (
    <Group gap={4} wrap="nowrap" miw={0} maw="100%">
      <Code tabIndex={0} style={{ overflowX: "auto", whiteSpace: "nowrap" }} aria-label={`command: ${line}`}>
        {line}
      </Code>
      <CopyButton value={line} timeout={1500}>
        {({ copied, copy }) => (
          <Tooltip label={copied ? "copied" : "copy"}>
            <ActionIcon variant="subtle" color="gray" onClick={copy} aria-label={copied ? "copied" : `copy: ${line}`}>
              {copied ? <CheckIcon /> : <CopyIcon />}
            </ActionIcon>
          </Tooltip>
        )}
      </CopyButton>
    </Group>
  );
}
