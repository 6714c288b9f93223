import { SimpleGrid, Stack } from "@mantine/core";
import type { Shape } from "@/api/client";
import { Command } from "@/parts/Command";
import { Figure } from "@/parts/Figure";
import { Loaded } from "@/parts/Loaded";
import { Told } from "@/parts/Told";
import { rate, usd } from "@/parts/words";
import { Estimate } from "@/pages/job/cost/Estimate";
import { Ledger } from "@/pages/job/cost/Ledger";
import { Machines } from "@/pages/job/cost/Machines";
import { Shares } from "@/pages/job/cost/Shares";
import type { TabProps } from "@/pages/job/JobTabs";
import { answerOf, useCosts } from "@/pages/job/queries";

export type Costs = Shape<"JobCosts">;

export default function CostTab({ job, isOver }: TabProps) {
  const costs = useCosts(job.id, isOver);
  return (
    <Loaded query={costs} lines={8}>
      {(found) => (
        <Stack gap="sm" data-answer={answerOf(job.id, "costs")}>
          <Sums costs={found} />
          <Shares costs={found} />
          <Estimate job={job} costs={found} />
          <Machines costs={found} />
          <Ledger costs={found} />
          <Command line={`crucible costs ${job.id}`} />
        </Stack>
      )}
    </Loaded>
  );
}

function Sums({ costs }: { costs: Costs }) {
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }} spacing="xs">
      <Sum label="So far" name="so_far_usd" value={costs.so_far_usd} note="posted and running" />
      <Sum label="In the ledger" name="posted_usd" value={costs.posted_usd} note="closed" />
      <Sum label="Per hour now" name="per_hour_usd" value={costs.per_hour_usd} write={rate} />
      <Sum label="Useful" name="useful_usd" value={costs.useful_usd} note="ranks ran, data moved" />
      <Sum label="Idle" name="idle_usd" value={costs.idle_usd} note="the rest of it" />
      <Sum
        label="Saved"
        name="saved_usd"
        value={costs.saved_usd}
        note={
          costs.unpriced_usd > 0 ? (
            <>
              against on demand; of <Told at="unpriced_usd" value={costs.unpriced_usd} write={usd} /> nobody knew that
              price
            </>
          ) : (
            "against prices on demand"
          )
        }
      />
    </SimpleGrid>
  );
}

interface SumProps {
  label: string;
  name: string;
  value: number;
  note?: React.ReactNode;
  write?: (value: number) => string;
}

function Sum({ label, name, value, note, write = usd }: SumProps) {
  return <Figure label={label} value={<Told at={name} value={value} write={write} />} note={note} />;
}
