/** What an answer is drawn with, and what is shown while there is none. An answer that grew old while the server was
 * away stays on the page and says so. */
import { Badge, Skeleton, Stack } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ErrorNote } from "@/parts/ErrorNote";
import { When } from "@/parts/When";

interface Props<T> {
  query: UseQueryResult<T>;
  children: (data: T) => ReactNode;
  /** Lines to hold free while waiting. */
  lines?: number;
}

export function Loaded<T>({ query, children, lines = 3 }: Props<T>) {
  if (query.data === undefined) {
    if (query.error) return <ErrorNote error={query.error} onRetry={() => void query.refetch()} />;
    return <Waiting lines={lines} />;
  }
  return (
    <>
      {query.error && <Stale at={query.dataUpdatedAt} />}
      {children(query.data)}
    </>
  );
}

export function Waiting({ lines }: { lines: number }) {
  return (
    <Stack gap="xs" role="group" aria-busy="true" aria-label="loading">
      {Array.from({ length: lines }, (_, line) => (
        <Skeleton key={line} height={18} width={`${95 - line * 12}%`} />
      ))}
    </Stack>
  );
}

export function Stale({ at }: { at: number }) {
  return (
    <Badge color="orange" variant="light" tt="none" mb="xs" role="status">
      stale: as of <When at={new Date(at).toISOString()} />
    </Badge>
  );
}
