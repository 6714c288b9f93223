import { expect, it } from "vitest";
import { exact, rateWords } from "@/pages/job/cost/parts";

it("writes an amount to the last digit of a micro-dollar", () => {
  expect(exact(358_010)).toBe("$0.358010");
  expect(exact(-83)).toBe("−$0.000083");
  expect(exact(1_234_000_001)).toBe("$1,234.000001");
  expect(exact(0)).toBe("$0.000000");
});

it("says for how long a rate is", () => {
  expect(rateWords(0.005, 3600)).toBe("$0.005 per hour");
  expect(rateWords(8, 2_628_000)).toBe("$8 per month");
  expect(rateWords(0.1, 7)).toBe("$0.1 per 7 s");
});
