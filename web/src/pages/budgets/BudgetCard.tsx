/** One budget: where it stands, how long it lasts, what happens at its end, and what it has stopped. */
import { Anchor, Badge, Button, Group, List, Paper, Stack, Text, Title, Tooltip } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { Shape } from "@/api/client";
import { SpentBar } from "@/pages/budgets/SpentBar";
import { nameOf, type Budget } from "@/pages/budgets/words";
import { Told } from "@/parts/Told";
import { When } from "@/parts/When";
import { percent, rate, usd } from "@/parts/words";

export type Act = "top up" | "change" | "remove";

interface Props {
  budget: Budget;
  /** Where it is in the answer. */
  at: string;
  stops: Shape<"NoticeItem">[];
  mayKeep: boolean;
  onAct: (act: Act) => void;
}

export function BudgetCard({ budget, at, stops, mayKeep, onAct }: Props) {
  return (
    <Paper withBorder p="md" component="section" aria-label={nameOf(budget)}>
      <Stack gap="sm">
        <Group justify="space-between" gap="xs">
          <Group gap="xs">
            <Title order={2}>{nameOf(budget)}</Title>
            <Text component="span">
              <Told at={`${at}.limit_usd`} value={budget.limit_usd} write={usd} />{" "}
              {budget.period === "month" ? "each month" : "once"}
            </Text>
            <Badge variant="light" color={budget.when_spent === "stop" ? "red" : "yellow"} tt="none">
              {budget.when_spent === "stop" ? "then jobs end" : "then jobs pause"}
            </Badge>
          </Group>
          <Actions mayKeep={mayKeep} of={nameOf(budget)} onAct={onAct} />
        </Group>
        <SpentBar budget={budget} at={at} />
        <Forecast budget={budget} at={at} />
        {stops.length > 0 && <Stops stops={stops} />}
      </Stack>
    </Paper>
  );
}

const ACTS: Record<Act, string> = { "top up": "Top up", change: "Change", remove: "Remove" };

function Actions({ mayKeep, of, onAct }: { mayKeep: boolean; of: string; onAct: (act: Act) => void }) {
  return (
    <Tooltip label="its managers and admins may" disabled={mayKeep} events={{ hover: true, focus: true, touch: true }}>
      <Group gap={6}>
        {(Object.keys(ACTS) as Act[]).map((act) => (
          <Button
            key={act}
            size="compact-sm"
            variant="default"
            disabled={!mayKeep}
            aria-label={`${act} ${of}`}
            onClick={() => onAct(act)}
          >
            {ACTS[act]}
          </Button>
        ))}
      </Group>
    </Tooltip>
  );
}

function Forecast({ budget, at }: { budget: Budget; at: string }) {
  const { runs_out_at, expected_usd, ends_at, thresholds, jobs } = budget;
  return (
    <Text size="sm" component="div">
      <Told at={`${at}.per_hour_usd`} value={budget.per_hour_usd} write={rate} /> now
      {jobs.length > 0 && ` for ${jobs.length === 1 ? "one job" : `${jobs.length} jobs`}`};{" "}
      {budget.left_microusd <= 0 ? (
        <strong>nothing is left</strong>
      ) : runs_out_at ? (
        <strong>
          at that rate it runs out <When at={runs_out_at} />
        </strong>
      ) : (
        "at that rate it lasts"
      )}
      {expected_usd !== null && (
        <>
          , and <Told at={`${at}.expected_usd`} value={expected_usd} write={usd} /> would be spent by the end of its
          month
        </>
      )}
      {ends_at && (
        <>
          , <When at={ends_at} />
        </>
      )}
      .
      <Text size="xs" className="dim">
        {thresholds.length > 0
          ? `People are told at ${thresholds.map((one) => percent(one, 2)).join(", ")}.`
          : "Nobody is told before its end."}{" "}
        Set by {budget.created_by}.
      </Text>
    </Text>
  );
}

const MOST = 5;

function Stops({ stops }: { stops: Props["stops"] }) {
  return (
    <div>
      <Text size="sm" fw={600}>
        Stopped or paused by it
      </Text>
      <List size="sm">
        {stops.slice(0, MOST).map((stop) => (
          <List.Item key={stop.seq}>
            <Anchor component={Link} to={`/jobs/${stop.job}`} size="sm">
              {stop.job}
            </Anchor>{" "}
            {stop.title.endsWith("paused") ? "paused" : "ended"} <When at={stop.at} />
          </List.Item>
        ))}
      </List>
      {stops.length > MOST && <Text size="sm">and {stops.length - MOST} more</Text>}
    </div>
  );
}
