/** A part of a page with a heading of its own. */
import { Group, Paper, Stack, Title } from "@mantine/core";
import { useId, type ReactNode } from "react";

export function Panel({ title, aside, children }: { title?: string; aside?: ReactNode; children: ReactNode }) {
  const id = useId();
  return (
    <Paper withBorder p="md" component="section" aria-labelledby={title ? id : undefined} style={{ minWidth: 0 }}>
      <Stack gap="sm">
        {(title || aside) && (
          <Group justify="space-between" gap="xs">
            {title && (
              <Title order={2} id={id}>
                {title}
              </Title>
            )}
            {aside}
          </Group>
        )}
        {children}
      </Stack>
    </Paper>
  );
}
