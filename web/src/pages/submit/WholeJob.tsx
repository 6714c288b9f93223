/** The job that a template gives with these parameters, to look at, or to write on without the template. */
import { Button, Code, Group, Modal, ScrollArea } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { parse } from "yaml";
import { filledQuery } from "@/pages/submit/queries";
import { Loaded } from "@/parts/Loaded";

/** null where the text names no template. */
export function templateOf(text: string): { name: string; parameters: Record<string, string> } | null {
  try {
    const job = (parse(text) as { job?: { template?: unknown; with?: Record<string, unknown> | null } } | null)?.job;
    if (typeof job?.template !== "string") return null;
    const given = Object.entries(job.with ?? {}).filter(([, value]) => value !== null);
    return { name: job.template, parameters: Object.fromEntries(given.map(([key, value]) => [key, String(value)])) };
  } catch {
    return null;
  }
}

export function WholeJob({ text, onWrite }: { text: string; onWrite: (text: string) => void }) {
  const [isOpen, { open, close }] = useDisclosure(false);
  const template = templateOf(text);
  if (template === null) return null;
  return (
    <>
      <Button size="compact-sm" variant="subtle" onClick={open}>
        Show the whole job
      </Button>
      <Modal opened={isOpen} onClose={close} title={`The job that ${template.name} gives`} size="lg">
        {isOpen && <Filled {...template} onWrite={(whole) => (close(), onWrite(whole))} />}
      </Modal>
    </>
  );
}

interface FilledProps {
  name: string;
  parameters: Record<string, string>;
  onWrite: (text: string) => void;
}

function Filled({ name, parameters, onWrite }: FilledProps) {
  const query = useQuery(filledQuery(name, parameters));
  return (
    <Loaded query={query} lines={8}>
      {({ spec_yaml }) => (
        <>
          <ScrollArea.Autosize mah="60vh" viewportProps={{ tabIndex: 0, "aria-label": "the whole job" }}>
            <Code block>{spec_yaml}</Code>
          </ScrollArea.Autosize>
          <Group justify="space-between" mt="sm">
            <span className="dim">Code that comes with a template is shipped only while the job names it.</span>
            <Button variant="default" onClick={() => onWrite(spec_yaml)}>
              Write on without the template
            </Button>
          </Group>
        </>
      )}
    </Loaded>
  );
}
