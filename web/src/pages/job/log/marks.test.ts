import { expect, it } from "vitest";
import { spans } from "@/pages/job/log/ansi";
import { cut, marked } from "@/pages/job/log/marks";

it("marks what was looked for across colours", () => {
  const pieces = marked(spans("the lo\x1b[31mss is\x1b[0m low"), /loss/);
  expect(pieces.map((piece) => [piece.text, piece.isMarked])).toEqual([
    ["the ", false],
    ["lo", true],
    ["ss", true],
    [" is", false],
    [" low", false],
  ]);
});

it("cuts a row out of a line and keeps its colours", () => {
  const row = cut(spans("abc\x1b[31mdef"), 2, 5);
  expect(row.map((span) => [span.text, span.look.ink])).toEqual([
    ["c", null],
    ["de", { index: 1 }],
  ]);
});

it("marks nothing where nothing is looked for", () => {
  expect(marked(spans("plain"), null)).toHaveLength(1);
  expect(marked(spans("plain"), /x*/)).toHaveLength(1);
});
