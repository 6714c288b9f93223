import { SimpleGrid } from "@mantine/core";
import type { Shape } from "@/api/client";
import { Figure } from "@/parts/Figure";
import { count, plural, rate, usd } from "@/parts/words";
import { zoneHere } from "@/pages/overview/day";
import { useSpent } from "@/pages/overview/queries";

/** GPUs, dollars an hour, and what was spent today and this month, as the server says. */
export function Sums({ overview }: { overview: Shape<"Overview"> }) {
  const { tz, midnight } = zoneHere();
  const today = useSpent(tz, midnight(new Date()).toISOString());
  const month = useSpent(tz, null);
  const note = tz === "UTC" ? "in UTC, with what runs" : "with what runs";
  const { jobs, gpus, machines, per_hour_usd } = overview;
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }} spacing="xs">
      <Figure label="GPUs held" value={count(gpus.held)} note={`on ${plural(machines, "machine")}`} />
      <Figure label="GPUs computing" value={count(gpus.computing)} note={`of ${count(gpus.held)} held`} />
      <Figure label="Spend now" value={rate(per_hour_usd)} note="everything that runs" />
      <Figure label="Spent today" value={usd(today.data?.total.cost_usd)} note={note} />
      <Figure label="Spent this month" value={usd(month.data?.total.cost_usd)} note={note} />
      <Figure
        label="Jobs"
        value={`${count(jobs.running)} running`}
        note={`${count(jobs.pending)} waiting, ${count(jobs.failed)} failed`}
      />
    </SimpleGrid>
  );
}
