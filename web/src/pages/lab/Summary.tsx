/** The Lab in five figures, its clock going. */
import { SimpleGrid } from "@mantine/core";
import { Figure } from "@/parts/Figure";
import { useNow } from "@/parts/now";
import { count, duration, plural } from "@/parts/words";
import { labTime, micro, secondsBetween } from "@/pages/lab/words";
import type { LabView } from "@/pages/lab/queries";

export function Summary({ lab, askedAt }: { lab: LabView; askedAt: number }) {
  const { counts } = lab;
  const alive = (counts["pending"] ?? 0) + (counts["running"] ?? 0) + (counts["shutting-down"] ?? 0);
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }}>
      <Clock lab={lab} askedAt={askedAt} />
      <Figure
        label="Machines"
        value={count(alive)}
        note={`${count(counts["running"] ?? 0)} running, ${count(counts["terminated"] ?? 0)} ended, kept apart as ${lab.enclosure}`}
      />
      <Figure
        label="Bill so far"
        value={micro(lab.cost_microusd)}
        note={`to nobody; ${plural(lab.disks, "disk")}, account ${lab.account}`}
      />
      <Figure
        label="Faults"
        value={count(lab.faults)}
        note={lab.faults === 0 ? "everything works as it should" : "rules that make things go wrong"}
      />
    </SimpleGrid>
  );
}

function Clock({ lab, askedAt }: { lab: LabView; askedAt: number }) {
  const now = labTime(lab.now, lab.speed, useNow().getTime() - askedAt);
  const speed = lab.speed === 1 ? "as fast as here" : `${lab.speed} times as fast as here`;
  return (
    <Figure
      label="The Lab's clock"
      value={<time dateTime={now.toISOString()}>{now.toISOString().slice(11, 19)} UTC</time>}
      note={`${now.toISOString().slice(0, 10)}, ${speed}; up for ${duration(secondsBetween(lab.started_at, now.toISOString()))}`}
    />
  );
}
