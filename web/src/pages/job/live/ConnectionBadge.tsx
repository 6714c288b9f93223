import { Badge } from "@mantine/core";
import type { Connection } from "@/api/job-stream";

const SHOWN: Record<Connection, { colour: string; words: string } | null> = {
  connecting: { colour: "gray", words: "connecting…" },
  live: { colour: "green", words: "live" },
  reconnecting: { colour: "orange", words: "reconnecting…" },
  ended: null,
};

export function ConnectionBadge({ connection }: { connection: Connection }) {
  const shown = SHOWN[connection];
  return (
    <span role="status" data-connection={connection}>
      {shown && (
        <Badge variant="dot" color={shown.colour} tt="none">
          {shown.words}
        </Badge>
      )}
    </span>
  );
}
