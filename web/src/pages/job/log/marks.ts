/** Spans of a row: cut out of their line, with what was looked for marked. */
import type { Span } from "@/pages/job/log/ansi";

export interface Piece extends Span {
  isMarked: boolean;
}

/** Characters `from` to `to` of what is shown. */
export function cut(spans: Span[], from: number, to: number): Span[] {
  const found: Span[] = [];
  let at = 0;
  for (const span of spans) {
    const [begin, end] = [Math.max(from - at, 0), Math.min(to - at, span.text.length)];
    if (end > begin) found.push({ text: span.text.slice(begin, end), look: span.look });
    at += span.text.length;
  }
  return found;
}

export function marked(spans: Span[], pattern: RegExp | null): Piece[] {
  const ranges = pattern === null ? [] : rangesOf(spans.map((span) => span.text).join(""), pattern);
  const pieces: Piece[] = [];
  let at = 0;
  for (const span of spans) {
    const end = at + span.text.length;
    const cuts = ranges.flat().filter((edge) => edge > at && edge < end);
    let from = at;
    for (const to of [...cuts, end]) {
      const isMarked = ranges.some(([begin, stop]) => begin <= from && to <= stop);
      pieces.push({ text: span.text.slice(from - at, to - at), look: span.look, isMarked });
      from = to;
    }
    at = end;
  }
  return pieces;
}

function rangesOf(text: string, pattern: RegExp): [number, number][] {
  const every = new RegExp(pattern.source, `${pattern.flags.replace("g", "")}g`);
  return [...text.matchAll(every)]
    .filter((found) => found[0] !== "")
    .map((found) => [found.index, found.index + found[0].length]);
}
