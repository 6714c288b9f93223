/** What may be spent, where each budget stands, and what it has stopped. */
import { Button, Stack } from "@mantine/core";
import { useState } from "react";
import { BudgetCard, type Act } from "@/pages/budgets/BudgetCard";
import { BudgetForm } from "@/pages/budgets/BudgetForm";
import { useBudgets, useProjectTeams, useStops } from "@/pages/budgets/queries";
import { RemoveBudget } from "@/pages/budgets/RemoveBudget";
import { TopUp } from "@/pages/budgets/TopUp";
import { mayKeep, mayKeepAny, type Budget } from "@/pages/budgets/words";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { Page } from "@/parts/Page";
import { useMe } from "@/session/me";

export default function BudgetsPage() {
  const me = useMe();
  const [isNew, setIsNew] = useState(false);
  const [doing, setDoing] = useState<{ act: Act; budget: Budget } | null>(null);
  const close = () => setDoing(null);
  return (
    <Page
      title="Budgets"
      about="A budget is kept, not only told of: jobs save and stop while there is still the money for it."
      actions={
        <>
          <Command line="crucible budget ls" />
          {mayKeepAny(me.data) && (
            <Button size="xs" onClick={() => setIsNew(true)}>
              New budget
            </Button>
          )}
        </>
      }
    >
      <Budgets onAct={(act, budget) => setDoing({ act, budget })} />
      {isNew && <BudgetForm onClose={() => setIsNew(false)} />}
      {doing?.act === "change" && <BudgetForm budget={doing.budget} onClose={close} />}
      {doing?.act === "top up" && <TopUp budget={doing.budget} onClose={close} />}
      {doing?.act === "remove" && <RemoveBudget budget={doing.budget} onClose={close} />}
    </Page>
  );
}

function Budgets({ onAct }: { onAct: (act: Act, budget: Budget) => void }) {
  const me = useMe();
  const teams = useProjectTeams();
  const stops = useStops();
  return (
    <Loaded query={useBudgets()} lines={6}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty title="No budget covers you" command="crucible budget set team:NAME 500 --per month">
            A budget is for a team, a project, a user, a job or the whole server.
          </Empty>
        ) : (
          <Stack data-answer="/v1/budgets">
            {items.map((budget, at) => (
              <BudgetCard
                key={budget.id}
                budget={budget}
                at={`items.${at}`}
                stops={(stops.data ?? []).filter((stop) => stop.details["budget"] === budget.id)}
                mayKeep={mayKeep(me.data, budget, teams.data ?? {})}
                onAct={(act) => onAct(act, budget)}
              />
            ))}
          </Stack>
        )
      }
    </Loaded>
  );
}
