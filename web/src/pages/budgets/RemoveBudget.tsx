import { Text } from "@mantine/core";
import { useRemove } from "@/pages/budgets/queries";
import { nameOf, type Budget } from "@/pages/budgets/words";
import { Confirm } from "@/parts/Confirm";

export function RemoveBudget({ budget, onClose }: { budget: Budget; onClose: () => void }) {
  const remove = useRemove(budget.id, onClose);
  return (
    <Confirm
      title={`Remove the budget of ${nameOf(budget)}`}
      action="Remove"
      command={`crucible budget rm ${budget.id}`}
      isOpen
      isPending={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate(undefined)}
      onClose={onClose}
    >
      <Text size="sm">Nothing will limit what is spent there, and jobs that it has paused go on.</Text>
    </Confirm>
  );
}
