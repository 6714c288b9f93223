/** The last look before money is spent: what it would cost, who pays, what is shipped. */
import { Alert, Button, Group, List, Modal, Stack, Table, Text } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import type { Code, Draft } from "@/pages/submit/draft";
import { parsed, fieldOf } from "@/pages/submit/form";
import { choiceOf, costRange, enablingOf, marketOf, placeOf, type Plan } from "@/pages/submit/plan-rows";
import { planQuery } from "@/pages/submit/queries";
import { Command } from "@/parts/Command";
import { ErrorNote } from "@/parts/ErrorNote";
import { Loaded } from "@/parts/Loaded";
import { plural, rate, usd } from "@/parts/words";

interface Props {
  draft: Draft;
  /** Sends it; the same text is never two jobs. */
  onSubmit: () => Promise<void>;
  onClose: () => void;
}

export function Confirm({ draft, onSubmit, onClose }: Props) {
  const plan = useQuery(planQuery(draft.text));
  const sending = useMutation({ mutationFn: onSubmit });
  return (
    <Modal opened onClose={onClose} title="Submit this job?" size="lg" closeOnClickOutside={!sending.isPending}>
      <Stack gap="sm">
        <Loaded query={plan} lines={4}>
          {(made) => <Summary plan={made} draft={draft} />}
        </Loaded>
        <Command line="crucible submit ./job.yaml" />
        {sending.error && <ErrorNote error={sending.error} />}
        {sending.error && (
          <Text size="sm" className="dim">
            Sent again, it is still one job.
          </Text>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} disabled={sending.isPending}>
            Back
          </Button>
          <Button loading={sending.isPending || sending.isSuccess} onClick={() => sending.mutate()} data-autofocus>
            Confirm and submit
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function Summary({ plan, draft }: { plan: Plan; draft: Draft }) {
  const one = choiceOf(plan);
  const total = plan.runnable_total ?? plan.total;
  const enabling = enablingOf(plan);
  const rows: [string, string][] = [
    ["Where", one ? `${placeOf(one)}, ${one.count} × ${one.instance_type}, ${marketOf(one)}` : `each step by itself`],
    ["Cost, p50–p90", one ? costOf(costRange(one)) : costOf(usd(total?.estimated_cost_usd))],
    ...(one ? ([["Per hour", rate(one.total_per_hour_usd)]] as [string, string][]) : []),
    ["Its own budget", budgetOf(draft.text)],
    ...(plan.budgets ?? []).map((budget): [string, string] => [
      `Budget ${budget.id}`,
      `${usd(budget.left_usd)} of ${usd(budget.limit_usd)} left`,
    ]),
    ["Code", codeOf(draft.code)],
  ];
  return (
    <Stack gap="sm">
      <Table variant="vertical" verticalSpacing={6}>
        <Table.Tbody>
          {rows.map(([name, value]) => (
            <Table.Tr key={name}>
              <Table.Th scope="row" w={160}>
                {name}
              </Table.Th>
              <Table.Td>{value}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {(plan.warnings ?? []).length > 0 && (
        <List size="sm">
          {plan.warnings?.map((warning) => (
            <List.Item key={warning}>{warning}</List.Item>
          ))}
        </List>
      )}
      {enabling && (
        <Alert color="yellow" variant="light" p="xs">
          {enabling}
        </Alert>
      )}
    </Stack>
  );
}

function costOf(range: string): string {
  return range === "–" ? "not known: the spec does not say how long it takes" : range;
}

function budgetOf(text: string): string {
  const document = parsed(text);
  const value = document === null ? undefined : fieldOf(document, ["job", "constraints", "budget"]);
  if (value === undefined) return "none: nothing stops it for what it costs";
  return typeof value === "number" ? `at most ${usd(value)}` : `at most ${String(value)}`;
}

function codeOf(code: Code): string {
  if (code.kind === "files") return `${plural(code.files.length, "file")} from this page`;
  return code.kind === "job" ? `that of job ${code.job}` : "none";
}
