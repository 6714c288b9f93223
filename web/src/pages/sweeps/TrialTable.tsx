/** Every trial: what it was given, what it was worth, what became of it. */
import { Anchor, Group, Pagination, Table } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useAddress } from "@/parts/address";
import { Command } from "@/parts/Command";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { StateBadge } from "@/parts/StateBadge";
import { duration } from "@/parts/words";
import { figure } from "@/pages/sweeps/axis";
import { outcome, paramOf } from "@/pages/sweeps/trials";
import type { JobView, Trial } from "@/pages/sweeps/queries";

const PAGE = 25;

interface Props {
  job: JobView;
  trials: Trial[];
  parameters: string[];
  objective: string;
}

export function TrialTable({ job, trials, parameters, objective }: Props) {
  const [{ page = "1" }, change] = useAddress();
  const pages = Math.max(1, Math.ceil(trials.length / PAGE));
  const at = Math.min(pages, Math.max(1, Number(page) || 1));
  const shown = trials.slice((at - 1) * PAGE, at * PAGE);
  const columns = [
    "Trial",
    "State",
    { title: objective, isNumber: true },
    ...parameters.map((name) => ({ title: name, isNumber: true })),
    { title: "Step", isNumber: true },
    { title: "Ran", isNumber: true },
    "Reason",
  ];
  return (
    <Panel title="Trials" aside={<Command line={`crucible sweep show ${job.id} --csv`} />}>
      <Rows label="Trials, the best first" columns={columns} minWidth={420 + 90 * parameters.length}>
        {shown.map((trial) => (
          <Row key={trial.id} jobId={job.id} trial={trial} parameters={parameters} />
        ))}
      </Rows>
      {pages > 1 && (
        <Group justify="flex-end">
          <Pagination
            total={pages}
            value={at}
            size="sm"
            onChange={(value) => change({ page: String(value) })}
            getControlProps={(control) => ({ "aria-label": `${control} page` })}
            getItemProps={(item) => ({ "aria-label": `page ${item}` })}
          />
        </Group>
      )}
    </Panel>
  );
}

function Row({ jobId, trial, parameters }: { jobId: string; trial: Trial; parameters: string[] }) {
  const value = trial.value ?? trial.value_so_far;
  return (
    <Table.Tr>
      <Table.Td>
        <Anchor component={Link} to={`/jobs/${jobId}`} search={{ task: String(trial.index) } as never} size="sm">
          {trial.index}
        </Anchor>
      </Table.Td>
      <Table.Td>
        <StateBadge state={outcome(trial)} />
      </Table.Td>
      <Table.Td className="number">
        {trial.value === null && value !== null && "~"}
        {figure(value)}
      </Table.Td>
      {parameters.map((name) => {
        const given = paramOf(trial, name);
        return (
          <Table.Td key={name} className="number">
            {typeof given === "number" ? figure(given) : String(given ?? "–")}
          </Table.Td>
        );
      })}
      <Table.Td className="number">{trial.step ?? "–"}</Table.Td>
      <Table.Td className="number">{ran(trial)}</Table.Td>
      <Table.Td className="dim">{trial.reason}</Table.Td>
    </Table.Tr>
  );
}

function ran({ started_at, ended_at }: Trial): string {
  if (started_at === null || ended_at === null) return "–";
  return duration((new Date(ended_at).getTime() - new Date(started_at).getTime()) / 1000);
}
