/** More money for a budget: what it has paused goes on. */
import { NumberInput, Text } from "@mantine/core";
import { useState } from "react";
import { useEdit } from "@/pages/budgets/queries";
import { nameOf, toppedUp, type Budget } from "@/pages/budgets/words";
import { Confirm } from "@/parts/Confirm";
import { problemAt, problemBeside } from "@/parts/problems";
import { usd } from "@/parts/words";

export function TopUp({ budget, onClose }: { budget: Budget; onClose: () => void }) {
  const [amount, setAmount] = useState(10);
  const edit = useEdit(budget.id, onClose);
  const limit_usd = toppedUp(budget, amount);
  return (
    <Confirm
      title={`Top up the budget of ${nameOf(budget)}`}
      action="Top up"
      command={`crucible budget top-up ${budget.id} ${amount}`}
      isOpen
      isSafe
      isPending={edit.isPending}
      isBlocked={amount <= 0}
      error={problemBeside(edit.error, ["limit_usd"])}
      onConfirm={() => edit.mutate({ limit_usd, version: budget.version })}
      onClose={onClose}
    >
      <NumberInput
        label="Add, in US dollars"
        min={0}
        decimalScale={6}
        thousandSeparator=","
        prefix="$"
        data-autofocus
        value={amount}
        onChange={(value) => setAmount(Number(value) || 0)}
        error={problemAt(edit.error, "limit_usd")}
      />
      <Text size="sm">
        The limit becomes {usd(limit_usd)}. Jobs that it has paused go on within seconds, the most urgent first.
      </Text>
    </Confirm>
  );
}
