import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider, useQuery } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { unreachable } from "@/api/errors";
import { Connection } from "@/shell/Connection";

function Asking() {
  useQuery({ queryKey: ["jobs"], queryFn: () => Promise.reject(unreachable()), retry: false });
  return null;
}

function shown(isAsking: boolean) {
  const tree = (
    <>
      <Connection />
      {isAsking && <Asking />}
    </>
  );
  return (
    <MantineProvider>
      <QueryClientProvider client={queries}>{tree}</QueryClientProvider>
    </MantineProvider>
  );
}

const queries = new QueryClient();

it("says that the server is away as soon as anything on the page finds it so", async () => {
  const fetched = vi.spyOn(globalThis, "fetch").mockImplementation(() => Promise.resolve(Response.json({})));
  const { rerender } = render(shown(false));
  await vi.waitFor(() => expect(fetched).toHaveBeenCalledTimes(1));
  expect(screen.getByRole("status").textContent).toBe("");
  fetched.mockImplementation(() => Promise.reject(new TypeError("Failed to fetch")));
  rerender(shown(true));
  expect(await screen.findByText("reconnecting…")).toBeTruthy();
});
