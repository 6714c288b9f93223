import { act, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { useWritten } from "@/parts/written";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function written() {
  const onPause = vi.fn<(text: string) => void>();
  const hook = renderHook(({ kept }) => useWritten(kept, onPause, 250), { initialProps: { kept: "" } });
  return {
    ...hook,
    onPause,
    text: () => hook.result.current[0],
    write: (text: string) => hook.result.current[1](text),
  };
}

it("is told when one pauses, and what came back of it changes nothing that was written since", () => {
  const { text, write, rerender, onPause } = written();
  act(() => write("lo"));
  act(() => void vi.advanceTimersByTime(300));
  expect(onPause).toHaveBeenCalledExactlyOnceWith("lo");
  act(() => write("loss"));
  rerender({ kept: "lo" });
  expect(text()).toBe("loss");
});

it("follows the way back and forth", () => {
  const { text, write, rerender } = written();
  act(() => write("loss"));
  act(() => void vi.advanceTimersByTime(300));
  rerender({ kept: "loss" });
  rerender({ kept: "" });
  expect(text()).toBe("");
  rerender({ kept: "loss" });
  expect(text()).toBe("loss");
});
