/** What is spent, what is kept to stop in time, and what is left; with marks where somebody is told. */
import { Group, Text } from "@mantine/core";
import { partsOf, type Budget } from "@/pages/budgets/words";
import { Told } from "@/parts/Told";
import { percent, usd } from "@/parts/words";
import classes from "@/pages/budgets/SpentBar.module.css";

export function SpentBar({ budget, at }: { budget: Budget; at: string }) {
  const parts = partsOf(budget);
  const share = budget.limit_microusd > 0 ? budget.spent_microusd / budget.limit_microusd : 1;
  const words = `${percent(share)} of ${usd(budget.limit_usd)} is spent`;
  return (
    <div>
      <div className={classes.bar} role="img" aria-label={words}>
        <span
          className={classes.spent}
          style={{ width: `${parts.spent * 100}%` }}
          data-over={share >= 1 || undefined}
        />
        <span className={classes.reserved} style={{ width: `${parts.reserved * 100}%` }} />
        {budget.thresholds.map((one) => (
          <i key={one} className={classes.mark} style={{ left: `${one * parts.limit * 100}%` }} />
        ))}
      </div>
      <Group style={{ gap: "2px 16px" }} mt={6}>
        <Part name="spent" kind={classes.spent} at={`${at}.spent_usd`} value={budget.spent_usd} />
        <Part
          name="reserved to stop in time"
          kind={classes.reserved}
          at={`${at}.reserved_usd`}
          value={budget.reserved_usd}
        />
        <Part name="left" kind={classes.left} at={`${at}.left_usd`} value={budget.left_usd} />
      </Group>
    </div>
  );
}

function Part({ name, kind, at, value }: { name: string; kind: string | undefined; at: string; value: number }) {
  return (
    <Group gap={6} wrap="nowrap">
      <span className={`${classes.key} ${kind}`} />
      <Text size="sm">
        <Told at={at} value={value} write={usd} /> <span className="dim">{name}</span>
      </Text>
    </Group>
  );
}
