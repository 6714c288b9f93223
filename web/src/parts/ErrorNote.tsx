/** What went wrong, with its stable code, what to do about it and, where asking again may help, a button. */
import { Alert, Button, Code, Group, Stack, Text } from "@mantine/core";
import { asApiError } from "@/api/errors";
import { Command } from "@/parts/Command";
import { remedyOf } from "@/parts/remedy";

export function ErrorNote({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const known = asApiError(error);
  const remedy = remedyOf(known);
  return (
    <Alert color="red" variant="light" role="alert" title="That did not work">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">{known.message}</Text>
        {known.field && (
          <Text size="sm">
            Field: <Code>{known.field}</Code>
          </Text>
        )}
        {remedy && (
          <Group gap="xs">
            <Text size="sm">{remedy.words}</Text>
            {remedy.command && <Command line={remedy.command} />}
          </Group>
        )}
        <Group gap="sm">
          <Code>{known.code}</Code>
          {known.requestId && <Text size="xs">request {known.requestId}</Text>}
          {onRetry && (
            <Button size="xs" variant="default" onClick={onRetry}>
              Try again
            </Button>
          )}
        </Group>
      </Stack>
    </Alert>
  );
}
