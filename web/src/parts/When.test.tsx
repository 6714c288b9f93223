import { MantineProvider } from "@mantine/core";
import { act, render, screen } from "@testing-library/react";
import { Profiler } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { When } from "@/parts/When";

const AT = "2026-11-18T05:00:00Z";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("is drawn once a tick, and is still between two", async () => {
  const drawn = vi.fn();
  render(
    <MantineProvider>
      <Profiler id="when" onRender={drawn}>
        <When at={AT} />
      </Profiler>
    </MantineProvider>,
  );
  await act(() => vi.advanceTimersByTimeAsync(900));
  const before = drawn.mock.calls.length;
  await act(() => vi.advanceTimersByTimeAsync(5_000));
  expect(drawn.mock.calls.length - before).toBeLessThanOrEqual(6);
});

it("is a stop of the tab key alone, and none in a row or a link", () => {
  const { container } = render(
    <MantineProvider>
      <When at={AT} />
      <a href="#job">
        <When at={AT} />
      </a>
    </MantineProvider>,
  );
  expect([...container.querySelectorAll("time")].map((time) => time.tabIndex)).toEqual([0, -1]);
});

it("says the local time and UTC to who points at it or comes by the tab key", () => {
  render(
    <MantineProvider env="test">
      <When at={AT} />
    </MantineProvider>,
  );
  const time = screen.getByText(/ago$|^in /);
  expect(screen.queryByRole("tooltip")).toBeNull();
  act(() => time.focus());
  expect(screen.getByRole("tooltip").textContent).toContain("2026-11-18 05:00:00 UTC");
  act(() => time.blur());
  expect(screen.queryByRole("tooltip")).toBeNull();
});
