/** A job's state: a colour and a word, never a colour alone. */
import { Badge } from "@mantine/core";

const COLOURS: Record<string, string> = {
  running: "green",
  completed: "teal",
  failed: "red",
  cancelled: "gray",
  queued: "blue",
  pending: "blue",
  provisioning: "indigo",
  starting: "indigo",
  scheduled: "indigo",
  checkpointing: "green",
  stopping: "orange",
  recovering: "orange",
  holding: "yellow",
  cancelling: "gray",
  waiting: "blue",
  succeeded: "teal",
  lost: "orange",
  timed_out: "red",
  unplaced: "orange",
  pruned: "gray",
  skipped: "gray",
  reused: "teal",
  ok: "green",
  warning: "orange",
  critical: "red",
  held: "yellow",
  paused: "yellow",
  healthy: "green",
  degraded: "orange",
  down: "red",
  active: "green",
  ready: "green",
  draining: "yellow",
  quarantined: "orange",
  unreachable: "red",
  leased: "blue",
  "shutting-down": "orange",
  unknown: "gray",
};

export function StateBadge({ state }: { state: string }) {
  return (
    <Badge
      variant="light"
      color={COLOURS[state] ?? "gray"}
      tt="none"
      autoContrast
      style={{ flexShrink: 0 }}
      miw="max-content"
    >
      {state.replaceAll("_", " ")}
    </Badge>
  );
}
