/** How a job is while it works: a word, and below it what was found and what to do about it. */
import { Alert, Stack, Text } from "@mantine/core";
import type { Shape } from "@/api/client";
import { When } from "@/parts/When";

const COLOURS = { critical: "red", warning: "orange", info: "blue" } as const;

export function HealthFindings({ findings }: { findings: Shape<"Finding">[] }) {
  if (findings.length === 0) return null;
  return (
    <Stack gap="xs" role="status">
      {findings.map((one) => (
        <Alert key={`${one.code} ${one.since}`} color={COLOURS[one.severity]} variant="light" py="xs" title={one.words}>
          <Text size="sm">
            {one.advice} <span className="dim">· {one.code} · since </span>
            <When at={one.since} />
          </Text>
        </Alert>
      ))}
    </Stack>
  );
}
