/** What the operator calls this server (Demo, Staging), so that nobody takes one for another. */
import { Badge } from "@mantine/core";
import { useSignInWays } from "@/session/ways";

export function Label() {
  const label = useSignInWays().data?.label;
  return label ? (
    <Badge variant="light" color="grape" tt="none">
      {label}
    </Badge>
  ) : null;
}
