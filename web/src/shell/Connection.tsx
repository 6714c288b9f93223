/** Whether the server answers: silent while it does, a badge while it does not. */
import { Badge } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { api, told } from "@/api/client";

const EVERY_MS = 10_000;
const WHILE_AWAY_MS = 2_000;

export function Connection() {
  const alive = useQuery({
    queryKey: ["alive"],
    queryFn: () => told(api.GET("/healthz")),
    refetchInterval: (query) => (query.state.error ? WHILE_AWAY_MS : EVERY_MS),
    retry: false,
  });
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
