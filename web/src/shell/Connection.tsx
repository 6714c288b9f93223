/** Whether the server answers: silent while it does, a badge while it does not. */
import { Badge } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { api, told } from "@/api/client";
import { asApiError, UNREACHABLE } from "@/api/errors";

const EVERY_MS = 10_000;
const WHILE_AWAY_MS = 2_000;
const ALIVE = "alive";

export function Connection() {
  const alive = useQuery({
    queryKey: [ALIVE],
    queryFn: () => told(api.GET("/healthz")),
    refetchInterval: (query) => (query.state.error ? WHILE_AWAY_MS : EVERY_MS),
    retry: false,
  });
  useLookAtOnce();
  return (
    <span role="status">
      {alive.error && (
        <Badge color="orange" variant="light" tt="none">
          reconnecting…
        </Badge>
      )}
    </span>
  );
}

/** What finds no server makes one look. */
function useLookAtOnce() {
  const queries = useQueryClient();
  useEffect(
    () =>
      queries.getQueryCache().subscribe((event) => {
        if (event.type !== "updated" || event.query.queryKey[0] === ALIVE) return;
        const { action } = event;
        if (action.type !== "failed" && action.type !== "error") return;
        if (asApiError(action.error).code === UNREACHABLE)
          void queries.refetchQueries({ queryKey: [ALIVE] }, { cancelRefetch: false });
      }),
    [queries],
  );
}
