/** Fetches what an address says a draft begins with, and asks first where that would take another one's place. */
import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, type ReactNode } from "react";
import { draftFrom, isTouched, type Draft } from "@/pages/submit/draft";
import { clonedQuery, templatesQuery } from "@/pages/submit/queries";
import { usingTemplate, type Start } from "@/pages/submit/start";
import { ErrorNote } from "@/parts/ErrorNote";
import { Loaded } from "@/parts/Loaded";
import { ApiError } from "@/api/errors";

interface Props {
  start: Start;
  draft: Draft;
  onBegin: (draft: Draft) => void;
  onKeep: () => void;
}

export function Begin({ start, ...rest }: Props) {
  if (start.kind === "job") return <FromJob id={start.id} origin={start.origin} {...rest} />;
  if (start.kind === "template") return <FromTemplate name={start.name} origin={start.origin} {...rest} />;
  return <Ask begun={draftFrom(start.origin, start.text)} {...rest} />;
}

type Rest = Omit<Props, "start"> & { origin: string };

function FromJob({ id, origin, ...rest }: Rest & { id: string }) {
  const query = useQuery(clonedQuery(id));
  return (
    <Kept query={query} onKeep={rest.onKeep}>
      <Loaded query={query}>
        {({ text, digest }) => (
          <Ask begun={draftFrom(origin, text, digest ? { kind: "job", digest, job: id } : undefined)} {...rest} />
        )}
      </Loaded>
    </Kept>
  );
}

function FromTemplate({ name, origin, ...rest }: Rest & { name: string }) {
  const query = useQuery(templatesQuery);
  return (
    <Kept query={query} onKeep={rest.onKeep}>
      <Loaded query={query}>
        {({ items }) => {
          const found = items.find((one) => one.name === name);
          if (found) return <Ask begun={draftFrom(origin, usingTemplate(found))} {...rest} />;
          return (
            <Kept query={{ error: true }} onKeep={rest.onKeep}>
              <ErrorNote error={new ApiError("not_found", `there is no template ${name}`, 404)} />
            </Kept>
          );
        }}
      </Loaded>
    </Kept>
  );
}

function Kept({ query, onKeep, children }: { query: { error: unknown }; onKeep: () => void; children: ReactNode }) {
  return (
    <Stack gap="sm" align="flex-start">
      {children}
      {query.error ? (
        <Button variant="default" onClick={onKeep}>
          Go on with my draft
        </Button>
      ) : null}
    </Stack>
  );
}

function Ask({ begun, draft, onBegin, onKeep }: { begun: Draft } & Omit<Props, "start">) {
  const isFree = !isTouched(draft);
  useEffect(() => {
    if (isFree) onBegin(begun);
  });
  if (isFree) return null;
  return (
    <Alert color="yellow" variant="light" title="You have written something that was not submitted">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">It would be lost.</Text>
        <Group gap="xs">
          <Button color="red" onClick={() => onBegin(begun)}>
            Replace it
          </Button>
          <Button variant="default" onClick={onKeep}>
            Go on with my draft
          </Button>
        </Group>
      </Stack>
    </Alert>
  );
}
