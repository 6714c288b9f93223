/** What is wrong with the text, each a button that leads to its line. */
import { Alert, Stack, Text, UnstyledButton } from "@mantine/core";
import type { Problem } from "@/pages/submit/queries";

export function Problems({ problems, onGo }: { problems: Problem[]; onGo: (problem: Problem) => void }) {
  const wrong = problems.filter((one) => !one.isWarning);
  return (
    <div aria-live="polite">
      {problems.length > 0 && (
        <Alert color={wrong.length > 0 ? "red" : "yellow"} variant="light" p="xs" title={titleOf(wrong.length)}>
          <Stack gap={2}>
            {problems.map((one) => (
              <UnstyledButton key={`${one.line}:${one.column} ${one.message}`} onClick={() => onGo(one)} mih={24}>
                <Text size="sm" component="span">
                  <span className="mono">
                    {one.line}:{one.column}
                  </span>{" "}
                  {one.field && <span className="mono">{one.field}: </span>}
                  {one.message}
                  {one.hint && <span className="dim"> ({one.hint})</span>}
                </Text>
              </UnstyledButton>
            ))}
          </Stack>
        </Alert>
      )}
    </div>
  );
}

function titleOf(wrong: number): string {
  if (wrong === 0) return "To be known";
  return wrong === 1 ? "A problem in the spec" : `${wrong} problems in the spec`;
}
