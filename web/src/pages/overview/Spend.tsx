/** What the last days cost, by team. */
import { useMemo } from "react";
import { useNow } from "@/parts/now";
import { askedOf } from "@/pages/costs/asked";
import { OverTime } from "@/pages/costs/OverTime";

const HOUR_MS = 3_600_000;

export default function Spend() {
  const hour = Math.floor(useNow().getTime() / HOUR_MS);
  const asked = useMemo(() => askedOf({ for: "14d", step: "day" }, new Date(hour * HOUR_MS)), [hour]);
  return <OverTime asked={asked} title="Spend, 14 days" />;
}
