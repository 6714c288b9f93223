/** How a search stands: its counts, its best trial, all trials in two pictures and a table. */
import { SimpleGrid, Stack, Text } from "@mantine/core";
import { Figure } from "@/parts/Figure";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { count, usd } from "@/parts/words";
import { figure } from "@/pages/sweeps/axis";
import { BestTrial } from "@/pages/sweeps/BestTrial";
import { ParallelChart } from "@/pages/sweeps/ParallelChart";
import { ScatterChart } from "@/pages/sweeps/ScatterChart";
import { TrialTable } from "@/pages/sweeps/TrialTable";
import { drawable } from "@/pages/sweeps/trials";
import { MOST_TRIALS, useSweep, useTrials, type JobView } from "@/pages/sweeps/queries";
import type { Shape } from "@/api/client";

export function SearchView({ job }: { job: JobView }) {
  const query = useSweep(job.id);
  return (
    <Loaded query={query} lines={6}>
      {(sweep) => (
        <Stack gap="md">
          <Counts sweep={sweep} />
          {sweep.note && <Text size="sm">{sweep.note}</Text>}
          {sweep.best && <BestTrial job={job} sweep={sweep} best={sweep.best} />}
          <Trials job={job} sweep={sweep} />
        </Stack>
      )}
    </Loaded>
  );
}

function Counts({ sweep }: { sweep: Shape<"SweepView"> }) {
  const { trials, objective, best } = sweep;
  const ended = trials.completed + trials.pruned + trials.failed + trials.skipped + trials.cancelled;
  const others = Object.entries({ pruned: trials.pruned, failed: trials.failed, skipped: trials.skipped })
    .filter(([, many]) => many > 0)
    .map(([word, many]) => `${count(many)} ${word}`);
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }}>
      <Figure
        label="Trials ended"
        value={`${count(ended)} of ${count(trials.total)}`}
        note={others.join(", ") || `by ${sweep.method}`}
      />
      <Figure label="Running" value={count(trials.running)} note={`${count(trials.waiting)} wait`} />
      <Figure
        label={objective ? `Best ${objective.metric}` : "Best"}
        value={figure(best?.value)}
        note={objective ? `${objective.goal}, the ${objective.reading} of a trial counts` : "no objective"}
      />
      <Figure
        label="Spent"
        value={usd(sweep.spent_usd)}
        note={sweep.budget_usd === null ? "no budget" : `of ${usd(sweep.budget_usd)}`}
      />
    </SimpleGrid>
  );
}

function Trials({ job, sweep }: { job: JobView; sweep: Shape<"SweepView"> }) {
  const query = useTrials(job);
  const { objective, parameters } = sweep;
  return (
    <Loaded query={query} lines={8}>
      {({ items, next_cursor }) => {
        const trials = drawable(items, parameters);
        return (
          <>
            {next_cursor && (
              <Text size="sm" className="dim">
                The best {count(MOST_TRIALS)} trials are shown; crucible sweep show {job.id} --all has the others.
              </Text>
            )}
            {objective && trials.some((trial) => trial.value !== null) && (
              <SimpleGrid cols={{ base: 1, lg: 2 }}>
                <Panel title="Parameters and worth">
                  <ParallelChart trials={trials} parameters={parameters} objective={objective} />
                </Panel>
                <Panel title="By one parameter">
                  <ScatterChart trials={trials} parameters={parameters} objective={objective} />
                </Panel>
              </SimpleGrid>
            )}
            <TrialTable job={job} trials={items} parameters={parameters} objective={objective?.metric ?? "value"} />
          </>
        );
      }}
    </Loaded>
  );
}
