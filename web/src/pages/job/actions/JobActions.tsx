import { Button, Group, Menu, Tooltip } from "@mantine/core";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useMe } from "@/session/me";
import { ACTIONS, commandOf, type Action } from "@/pages/job/actions/actions";
import { Asked } from "@/pages/job/actions/Asked";
import { useKept, type Job } from "@/pages/job/queries";
import { mayChangeJob } from "@/pages/job/rights";

/** The likeliest ones as buttons, the others in a menu. */
const BESIDE = 2;

export function JobActions({ job }: { job: Job }) {
  const [asked, setAsked] = useState<Action | null>(null);
  const kept = useKept();
  const me = useMe();
  const navigate = useNavigate();
  const isKept = kept.data?.items.some((one) => one.id === job.id);
  const may = mayChangeJob(me.data, job);
  const possible = ACTIONS.filter((one) =>
    one.isPossible({ status: job.status, desired: job.desired, ...(isKept !== undefined && { isKept }) }),
  );
  return (
    <Group gap="xs">
      {possible.slice(0, BESIDE).map((one) => (
        <ActionButton key={one.name} action={one} may={may} onClick={() => setAsked(one)} />
      ))}
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" size="xs">
            More
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {possible.slice(BESIDE).map((one) => (
            <Menu.Item key={one.name} disabled={!may} onClick={() => setAsked(one)}>
              {one.label}…
            </Menu.Item>
          ))}
          <Menu.Item component={Link} to="/submit" search={{ from: job.id } as never}>
            Clone to Submit
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {asked && (
        <Asked
          title={`${asked.label} ${job.name}?`}
          about={asked.about}
          command={commandOf(asked.name, [job.id])}
          label={asked.label}
          isSafe={!asked.isDangerous}
          run={(once) => asked.run(job.id, once)}
          onDone={(made) => {
            if (typeof made === "string") void navigate({ to: "/jobs/$jobId", params: { jobId: made } });
          }}
          onClose={() => setAsked(null)}
        />
      )}
    </Group>
  );
}

function ActionButton({ action, may, onClick }: { action: Action; may: boolean; onClick: () => void }) {
  return (
    <Tooltip label={may ? action.about : "You may look at this job and not change it."} multiline maw={280}>
      <Button
        size="xs"
        variant="default"
        {...(action.isDangerous && { c: "var(--bad)" })}
        data-disabled={!may || undefined}
        aria-disabled={!may}
        onClick={() => may && onClick()}
      >
        {action.label}
      </Button>
    </Tooltip>
  );
}
