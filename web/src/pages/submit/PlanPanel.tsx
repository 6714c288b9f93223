/** Where the job would run, as one types: the table, figures below it, and why everything else was not chosen. */
import { Badge, Collapse, List, Stack, Text, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { figuresOf, planRows, whyNot, type Plan } from "@/pages/submit/plan-rows";
import { PlanTable } from "@/pages/submit/PlanTable";
import type { Planned } from "@/pages/submit/queries";
import classes from "@/pages/submit/submit.module.css";
import { WorkflowTable } from "@/pages/submit/WorkflowTable";
import { ErrorNote } from "@/parts/ErrorNote";
import { Waiting } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { plural } from "@/parts/words";

export function PlanPanel({ planned }: { planned: Planned }) {
  const { plan, isOld, isAsking, error, query } = planned;
  return (
    <Panel title="Where it could run" aside={<Updating isAsking={isAsking} isOld={isOld && plan !== null} />}>
      {error && <ErrorNote error={error} onRetry={error.isPassing ? () => void query.refetch() : undefined} />}
      {plan === null && isAsking && <Waiting lines={4} />}
      {plan === null && !isAsking && !error && (
        <Text size="sm" className="dim">
          The plan appears here as soon as the spec has no problems.
        </Text>
      )}
      {plan !== null && (
        <div className={isOld ? classes.old : undefined} aria-busy={isAsking}>
          <Drawn plan={plan} />
        </div>
      )}
    </Panel>
  );
}

/** Said aloud only when it has ended, not at each letter. */
function Updating({ isAsking, isOld }: { isAsking: boolean; isOld: boolean }) {
  if (isAsking)
    return (
      <Badge variant="light" color="blue" tt="none">
        updating
      </Badge>
    );
  return isOld ? (
    <Badge variant="light" color="orange" tt="none">
      of an earlier text
    </Badge>
  ) : null;
}

function Drawn({ plan }: { plan: Plan }) {
  const rows = planRows(plan);
  const notes = [...(plan.warnings ?? []), ...(plan.notes ?? [])];
  return (
    <Stack gap="xs">
      {(plan.steps ?? []).length > 0 ? <WorkflowTable plan={plan} /> : rows.length > 0 && <PlanTable rows={rows} />}
      {!plan.chosen && (plan.steps ?? []).length === 0 && (
        <Text size="sm">No place now: {plan.reason ?? "nothing fits"}</Text>
      )}
      <Text size="xs" className="dim">
        {figuresOf(plan)}
      </Text>
      {notes.length > 0 && (
        <List size="xs" className="dim">
          {notes.map((note) => (
            <List.Item key={note}>{note}</List.Item>
          ))}
        </List>
      )}
      <WhyNot plan={plan} />
    </Stack>
  );
}

function WhyNot({ plan }: { plan: Plan }) {
  const [isOpen, { toggle }] = useDisclosure(true);
  const reasons = whyNot(plan);
  if (reasons.length === 0) return null;
  return (
    <div>
      <UnstyledButton onClick={toggle} aria-expanded={isOpen} mih={24}>
        <Text size="sm" fw={600}>
          {isOpen ? "▾" : "▸"} Why not the others: {plural(reasons.length, "reason")}
        </Text>
      </UnstyledButton>
      <Collapse expanded={isOpen}>
        <List size="xs" mt={4}>
          {reasons.map(({ what, why }) => (
            <List.Item key={`${what} ${why}`}>
              <span className="dim">not</span> {what}: {why}
            </List.Item>
          ))}
        </List>
      </Collapse>
    </div>
  );
}
