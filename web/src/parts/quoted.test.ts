import { expect, it } from "vitest";
import { quoted } from "@/parts/quoted";

it("a word stays one word of a shell", () => {
  expect(quoted("vision-2@x")).toBe("vision-2@x");
  expect(quoted("last month")).toBe("'last month'");
  expect(quoted("it's")).toBe(`'it'\\''s'`);
});
