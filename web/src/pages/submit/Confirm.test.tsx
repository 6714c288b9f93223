import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { unreachable } from "@/api/errors";
import { Confirm } from "@/pages/submit/Confirm";
import { draftFrom } from "@/pages/submit/draft";
import { planQuery } from "@/pages/submit/queries";

const TEXT = "job:\n  command: x\n  constraints: {budget: 50}\n";

function shown(onSubmit: () => Promise<void>) {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const budgets = [{ id: "team:vision", limit_usd: 100, left_microusd: 40e6, left_usd: 40 }];
  queries.setQueryData(planQuery(TEXT).queryKey, { chosen: null, alternatives: [], rejections: [], budgets });
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={queries}>
        <Confirm draft={draftFrom("", TEXT)} onSubmit={onSubmit} onClose={() => undefined} />
      </QueryClientProvider>
    </MantineProvider>,
  );
}

test("who pays is told before anything is spent", async () => {
  shown(() => Promise.resolve());
  expect(await screen.findByText("at most $50.00")).toBeTruthy();
  expect(screen.getByText("$40.00 of $100.00 left")).toBeTruthy();
});

test("two clicks send it once", async () => {
  const send = vi.fn(() => new Promise<void>(() => undefined));
  shown(send);
  const button = await screen.findByRole("button", { name: "Confirm and submit" });
  await userEvent.dblClick(button);
  expect(send).toHaveBeenCalledTimes(1);
});

test("what went wrong is said, and it can be sent again", async () => {
  const send = vi.fn<() => Promise<void>>().mockRejectedValueOnce(unreachable()).mockResolvedValue();
  shown(send);
  await userEvent.click(await screen.findByRole("button", { name: "Confirm and submit" }));
  expect(await screen.findByText("Sent again, it is still one job.")).toBeTruthy();
  await userEvent.click(screen.getByRole("button", { name: "Confirm and submit" }));
  expect(send).toHaveBeenCalledTimes(2);
});
