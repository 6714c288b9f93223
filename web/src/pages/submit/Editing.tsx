/** The job file three ways: as text, as a form, and the code that goes with it. */
import { Group, Paper, Skeleton, Stack, Tabs, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useId, useState } from "react";
import { CodePanel } from "@/pages/submit/CodePanel";
import type { Draft } from "@/pages/submit/draft";
import { JobForm } from "@/pages/submit/JobForm";
import { Problems } from "@/pages/submit/Problems";
import { schemaQuery, type Problem } from "@/pages/submit/queries";
import { WholeJob } from "@/pages/submit/WholeJob";
import { Loaded } from "@/parts/Loaded";

const YamlEditor = lazy(() => import("@/pages/submit/YamlEditor"));

export const TABS = ["yaml", "form", "code"];
const HEIGHT = 440;

interface Props {
  draft: Draft;
  problems: Problem[];
  tab: string;
  onTab: (tab: string) => void;
  onChange: (changes: Partial<Draft>) => void;
}

export function Editing({ draft, problems, tab, onTab, onChange }: Props) {
  const schema = useQuery(schemaQuery);
  const hint = useId();
  const [goTo, setGoTo] = useState<{ line: number; column: number } | null>(null);
  return (
    <Paper withBorder p="sm" style={{ minWidth: 0 }}>
      <Stack gap="xs">
        <Tabs value={tab} onChange={(next) => next && onTab(next)} keepMounted={false}>
          <Tabs.List>
            <Tabs.Tab value="yaml">YAML</Tabs.Tab>
            <Tabs.Tab value="form">Form</Tabs.Tab>
            <Tabs.Tab value="code">Code{draft.code.kind === "files" ? ` (${draft.code.files.length})` : ""}</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="yaml" pt="xs">
            <Suspense fallback={<Skeleton height={HEIGHT} />}>
              <div style={{ height: HEIGHT, border: "1px solid var(--line)", borderRadius: 4, overflow: "hidden" }}>
                <YamlEditor
                  value={draft.text}
                  onChange={(text) => onChange({ text })}
                  schema={schema.data}
                  problems={problems}
                  goTo={goTo}
                  describedBy={hint}
                />
              </div>
            </Suspense>
            <Group justify="space-between" mt={4}>
              <Text size="xs" className="dim" id={hint}>
                Ctrl-Space completes. Tab indents; press Esc and then Tab to leave the editor.
              </Text>
              <WholeJob text={draft.text} onWrite={(text) => onChange({ text })} />
            </Group>
          </Tabs.Panel>
          <Tabs.Panel value="form" pt="xs">
            <Loaded query={schema} lines={8}>
              {(known) => (
                <JobForm text={draft.text} schema={known} problems={problems} onChange={(text) => onChange({ text })} />
              )}
            </Loaded>
          </Tabs.Panel>
          <Tabs.Panel value="code" pt="xs">
            <CodePanel text={draft.text} code={draft.code} onChange={(code) => onChange({ code })} />
          </Tabs.Panel>
        </Tabs>
        <Problems
          problems={problems}
          onGo={({ line, column }) => {
            onTab("yaml");
            setGoTo({ line, column });
          }}
        />
      </Stack>
    </Paper>
  );
}
