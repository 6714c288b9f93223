/** What submit would buy now, in figures. */
import { Alert, SimpleGrid, Stack, Text } from "@mantine/core";
import {
  choiceOf,
  costRange,
  enablingOf,
  gpusOf,
  hoursOf,
  linesAbout,
  marketOf,
  placeOf,
  riskOf,
  type Plan,
} from "@/pages/submit/plan-rows";
import classes from "@/pages/submit/submit.module.css";
import { Figure } from "@/parts/Figure";
import { duration, percent, rate, usd } from "@/parts/words";

export function Choice({ plan, isOld }: { plan: Plan; isOld: boolean }) {
  const one = choiceOf(plan);
  const total = plan.runnable_total ?? plan.total;
  const enabling = enablingOf(plan);
  if (one === null)
    return (
      <Text size="sm" className={isOld ? classes.old : undefined}>
        {total
          ? `A workflow: total ${usd(total.estimated_cost_usd)}, done after ${hoursOf(total.estimated_hours)} h.`
          : `No place now: ${plan.reason ?? "nothing fits"}`}
      </Text>
    );
  return (
    <Stack gap="sm" className={isOld ? classes.old : undefined}>
      <div>
        <Text fw={600}>
          {placeOf(one)} · {one.count} × {one.instance_type}
        </Text>
        <Text size="sm" className="dim">
          {[gpusOf(one) === "0" ? "no GPU" : gpusOf(one), marketOf(one), one.why].filter(Boolean).join(" · ")}
        </Text>
      </div>
      <SimpleGrid cols={{ base: 2, xs: 3, md: 2 }} spacing="xs" verticalSpacing="xs">
        <Figure
          label="Total, p50–p90"
          value={costRange(one)}
          note={one.estimated_cost_usd === null ? "hours not known" : `confidence ${one.confidence}`}
        />
        <Figure label="Per hour" value={rate(one.total_per_hour_usd)} note="all machines" />
        <Figure label="Starts in" value={duration(one.start_s)} />
        <Figure
          label="Hours"
          value={hoursOf(one.estimated_hours)}
          note={one.hours_p90 === null ? undefined : `p90 ${hoursOf(one.hours_p90)}`}
        />
        <Figure label="Risk" value={riskOf(one)} note="to miss deadline or budget" />
        <Figure label="Saving" value={percent(one.saving)} note="against on demand" />
      </SimpleGrid>
      {linesAbout(one).length > 0 && (
        <Text size="xs" className="dim">
          {linesAbout(one).join(" · ")}
        </Text>
      )}
      {enabling && (
        <Alert color="yellow" variant="light" p="xs">
          <Text size="sm">{enabling}</Text>
        </Alert>
      )}
    </Stack>
  );
}
