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
        <div>
          <Title order={1}>{title}</Title>
          {about && (
            <Text size="sm" className="dim" component="div">
              {about}
            </Text>
          )}
        </div>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  );
}
