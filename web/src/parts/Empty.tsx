/** Nothing there yet: what would be here, and the command that makes the first one. */
import { Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Command } from "@/parts/Command";

export function Empty({ title, command, children }: { title: string; command?: string; children?: ReactNode }) {
  return (
    <Stack align="center" gap="xs" py="xl" px="md">
      <Text fw={600}>{title}</Text>
      {children && (
        <Text size="sm" className="dim" ta="center" maw={480}>
          {children}
        </Text>
      )}
      {command && <Command line={command} />}
    </Stack>
  );
}
