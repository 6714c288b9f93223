import { Button, Group, Menu, Tooltip } from "@mantine/core";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { mayChange, useMe } from "@/session/me";
import { ACTIONS, commandOf, type Action } from "@/pages/job/actions/actions";
import { Asked } from "@/pages/job/actions/Asked";
import { useKept, type Job } from "@/pages/job/queries";
import { mayChangeJob } from "@/pages/job/rights";

/** The likeliest ones as buttons, the others in a menu; for who may only look, none of them. */
const BESIDE = 2;

export function JobActions({ job }: { job: Job }) {
  const [asked, setAsked] = useState<Action | null>(null);
  const kept = useKept();
  const me = useMe();
  const navigate = useNavigate();
  const isKept = kept.data?.items.some((one) => one.id === job.id);
  const may = mayChangeJob(me.data, job);
  const possible = ACTIONS.filter(
    (one) =>
      may && one.isPossible({ status: job.status, desired: job.desired, ...(isKept !== undefined && { isKept }) }),
  );
  if (!mayChange(me.data)) return null;
  return (
    <Group gap="xs">
      {possible.slice(0, BESIDE).map((one) => (
        <ActionButton key={one.name} action={one} onClick={() => setAsked(one)} />
      ))}
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" size="xs">
            More
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {possible.slice(BESIDE).map((one) => (
            <Menu.Item key={one.name} onClick={() => setAsked(one)}>
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

function ActionButton({ action, onClick }: { action: Action; onClick: () => void }) {
  return (
    <Tooltip label={action.about} multiline maw={280}>
      <Button size="xs" variant="default" {...(action.isDangerous && { c: "var(--bad)" })} onClick={onClick}>
        {action.label}
      </Button>
    </Tooltip>
  );
}
