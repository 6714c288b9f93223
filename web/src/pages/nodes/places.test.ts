import { expect, it } from "vitest";
import { gpusOf, placeOf } from "@/pages/nodes/places";

it("GPUs of a host are counted by name", () => {
  const gpus = [{ name: "NVIDIA H100" }, { name: "NVIDIA H100" }, { name: "NVIDIA A10G" }];
  expect(gpusOf({ gpus })).toBe("2 × H100, 1 × A10G");
  expect(gpusOf({})).toBe("none");
});

it("a provider of one place is named once", () => {
  expect(placeOf({ provider: "local", region: "local" })).toBe("local");
  expect(placeOf({ provider: "aws", region: "us-east-1" })).toBe("aws us-east-1");
});
