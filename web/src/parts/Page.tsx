/** The frame of every page: one heading, what can be done here, and the page's title in the tab. */
import { Group, Stack, Text, Title } from "@mantine/core";
import { useEffect, type ReactNode } from "react";

interface Props {
  title: string;
  /** A sentence below the heading. */
  about?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

export function Page({ title, about, actions, children }: Props) {
  useEffect(() => {
    document.title = `${title} · Crucible`;
  }, [title]);
  return (
    <Stack gap="md">
      <Group justify="space-between" align="flex-start" gap="xs">
        <div style={{ minWidth: 0 }}>
          <Title order={1} style={{ overflowWrap: "anywhere" }}>
            {title}
          </Title>
          {about && (
            <Text size="sm" className="dim" component="div">
              {about}
            </Text>
          )}
        </div>
        {actions && (
          <Group gap="xs" maw="100%">
            {actions}
          </Group>
        )}
      </Group>
      {children}
    </Stack>
  );
}
