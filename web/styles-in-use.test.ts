import { expect, it } from "vitest";
import { trimmed } from "./styles-in-use.ts";

const USED = new Set(["m_a1"]);

it("keeps rules of parts that are there, and those of no part at all", () => {
  expect(trimmed(":root{--a:1}.m_a1{color:red}.m_b2{color:blue}", USED)).toBe(":root{--a:1}.m_a1{color:red}");
});

it("keeps a rule that stands for several parts as long as one is there", () => {
  expect(trimmed(".m_b2 .m_a1:hover,.m_b2{color:red}", USED)).toBe(".m_b2 .m_a1:hover,.m_b2{color:red}");
});

it("looks into conditions, and drops them when nothing is left in them", () => {
  expect(trimmed("@media (hover:hover){.m_a1{top:0}.m_b2{top:1px}}@media print{.m_b2{top:0}}", USED)).toBe(
    "@media (hover:hover){.m_a1{top:0}}",
  );
  expect(trimmed("@keyframes m_c3{0%{top:0}to{top:1px}}", new Set(["m_c3"]))).toBe(
    "@keyframes m_c3{0%{top:0}to{top:1px}}",
  );
});
