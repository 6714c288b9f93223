/** Something to begin with: examples and templates. What was written is not lost without a question. */
import { Button, Menu, Modal, Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { draftFrom, isTouched, type Draft } from "@/pages/submit/draft";
import { examplesQuery, templatesQuery } from "@/pages/submit/queries";
import { usingTemplate } from "@/pages/submit/start";

export function StartMenu({ draft, onBegin }: { draft: Draft; onBegin: (draft: Draft) => void }) {
  const examples = useQuery(examplesQuery);
  const templates = useQuery(templatesQuery);
  const [asked, setAsked] = useState<Draft | null>(null);
  const begin = (begun: Draft) => (isTouched(draft) ? setAsked(begun) : onBegin(begun));
  return (
    <>
      <Menu position="bottom-end" width={340}>
        <Menu.Target>
          <Button variant="default">Start from…</Button>
        </Menu.Target>
        <Menu.Dropdown mah={480} style={{ overflowY: "auto" }}>
          <Menu.Label>Examples</Menu.Label>
          {(examples.data?.items ?? []).map((one) => (
            <Item
              key={one.name}
              title={one.name}
              about={one.about}
              onClick={() => begin(draftFrom(draft.origin, one.spec_yaml))}
            />
          ))}
          <Menu.Label>Templates</Menu.Label>
          {(templates.data?.items ?? [])
            .filter((one) => one.problem === null)
            .map((one) => (
              <Item
                key={one.name}
                title={one.name}
                about={one.description}
                onClick={() => begin(draftFrom(draft.origin, usingTemplate(one)))}
              />
            ))}
        </Menu.Dropdown>
      </Menu>
      <Modal opened={asked !== null} onClose={() => setAsked(null)} title="Replace what you have written?">
        <Group justify="flex-end">
          <Button variant="default" onClick={() => setAsked(null)}>
            Keep it
          </Button>
          <Button
            color="red"
            onClick={() => {
              if (asked) onBegin(asked);
              setAsked(null);
            }}
          >
            Replace it
          </Button>
        </Group>
      </Modal>
    </>
  );
}

function Item({ title, about, onClick }: { title: string; about: string; onClick: () => void }) {
  return (
    <Menu.Item onClick={onClick}>
      <Text size="sm">{title}</Text>
      <Text size="xs" className="dim">
        {about}
      </Text>
    </Menu.Item>
  );
}
