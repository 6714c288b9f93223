import { afterEach, vi } from "vitest";
import { cleanup } from "@testing-library/react";

// What jsdom lacks and Mantine asks for.
window.matchMedia = vi.fn((query: string) => ({
  matches: false,
  media: query,
  onchange: null,
  addListener: () => undefined,
  removeListener: () => undefined,
  addEventListener: () => undefined,
  removeEventListener: () => undefined,
  dispatchEvent: () => false,
})) as unknown as typeof window.matchMedia;

class NoResizes {
  observe() {}
  unobserve() {}
  disconnect() {}
}
window.ResizeObserver = NoResizes;
Element.prototype.scrollIntoView = () => undefined;

afterEach(cleanup);
