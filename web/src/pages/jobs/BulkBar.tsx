/** What can be wished of the jobs that are selected. */
import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";
import { plural } from "@/parts/words";
import { useMe } from "@/session/me";
import { ACTIONS, commandOf, type Action } from "@/pages/job/actions/actions";
import { Asked } from "@/pages/job/actions/Asked";
import { mayChangeJob } from "@/pages/job/rights";
import type { Brief } from "@/pages/jobs/book";
import { runMany } from "@/pages/jobs/many";

export function BulkBar({ jobs, onClear }: { jobs: Brief[]; onClear: () => void }) {
  const [asked, setAsked] = useState<Action | null>(null);
  const me = useMe().data;
  if (jobs.length === 0) return null;
  const fitting = (action: Action) => jobs.filter((one) => action.isPossible(one) && mayChangeJob(me, one));
  const ids = asked ? fitting(asked).map((one) => one.id) : [];
  return (
    <Group gap="xs" role="group" aria-label="selected jobs">
      <Text size="sm" role="status">
        {plural(jobs.length, "job")} selected
      </Text>
      {ACTIONS.filter((one) => one.isForMany).map((one) => (
        <Button
          key={one.name}
          size="compact-sm"
          variant="default"
          disabled={fitting(one).length === 0}
          onClick={() => setAsked(one)}
        >
          {one.label} {fitting(one).length || ""}
        </Button>
      ))}
      <Button size="compact-sm" variant="subtle" color="gray" onClick={onClear}>
        Clear
      </Button>
      {asked && (
        <Asked
          title={`${asked.label} ${plural(ids.length, "job")}?`}
          about={
            <>
              {asked.about}
              {ids.length < jobs.length &&
                ` ${plural(jobs.length - ids.length, "other")} cannot be, and stay as they are.`}
            </>
          }
          command={commandOf(asked.name, ids)}
          label={asked.label}
          isSafe={!asked.isDangerous}
          run={(once) => runMany(asked, ids, once)}
          onDone={onClear}
          onClose={() => setAsked(null)}
        />
      )}
    </Group>
  );
}
