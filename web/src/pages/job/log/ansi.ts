/** What a terminal would show of a line: colours (SGR), and carriage returns as progress bars use them. Everything else
 * that a terminal would obey is left out. */

export type Colour = { index: number } | { rgb: [number, number, number] } | null;

export interface Look {
  ink: Colour;
  paper: Colour;
  isBold: boolean;
  isDim: boolean;
  isItalic: boolean;
  isUnderlined: boolean;
  isStruck: boolean;
  isInverse: boolean;
}

export interface Span {
  text: string;
  look: Look;
}

export const ORDINARY: Look = {
  ink: null,
  paper: null,
  isBold: false,
  isDim: false,
  isItalic: false,
  isUnderlined: false,
  isStruck: false,
  isInverse: false,
};

// CSI, OSC (ended by BEL or ST), other two-letter escapes, and single control characters but tab and carriage return.
const ESCAPES =
  /\x1b\[([0-9;:?<=>]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;
const SPECIAL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/;

/** The text alone, as it is shown. */
export function plain(text: string): string {
  if (!SPECIAL.test(text)) return text;
  return spans(text)
    .map((span) => span.text)
    .join("");
}

export function spans(text: string): Span[] {
  if (!SPECIAL.test(text)) return [{ text, look: ORDINARY }];
  let row: Span[] = [];
  let look = ORDINARY;
  for (const part of text.split("\r")) {
    const drawn = draw(part, look);
    look = drawn.look;
    row = drawn.isErased ? drawn.spans : over(drawn.spans, row);
  }
  return row;
}

interface Drawn {
  spans: Span[];
  look: Look;
  /** What stood behind it is gone (`CSI K`). */
  isErased: boolean;
}

function draw(text: string, begin: Look): Drawn {
  const made: Span[] = [];
  let look = begin;
  let isErased = false;
  let from = 0;
  const take = (to: number) => {
    if (to > from) made.push({ text: text.slice(from, to), look });
  };
  for (const found of text.matchAll(ESCAPES)) {
    take(found.index);
    from = found.index + found[0].length;
    if (found[2] === "m") look = changed(look, found[1] ?? "");
    else if (found[2] === "K") isErased = true;
  }
  take(text.length);
  return { spans: made, look, isErased };
}

/** What was written last stands above; of what was there before, the rest sticks out behind. */
function over(above: Span[], below: Span[]): Span[] {
  let covered = above.reduce((sum, span) => sum + span.text.length, 0);
  if (covered === 0) return below;
  const rest: Span[] = [];
  for (const span of below) {
    if (span.text.length > covered) rest.push({ text: span.text.slice(covered), look: span.look });
    covered = Math.max(0, covered - span.text.length);
  }
  return [...above, ...rest];
}

const ON: Record<number, Partial<Look>> = {
  1: { isBold: true },
  2: { isDim: true },
  3: { isItalic: true },
  4: { isUnderlined: true },
  7: { isInverse: true },
  9: { isStruck: true },
  21: { isUnderlined: true },
  22: { isBold: false, isDim: false },
  23: { isItalic: false },
  24: { isUnderlined: false },
  27: { isInverse: false },
  29: { isStruck: false },
  39: { ink: null },
  49: { paper: null },
};

/** After `CSI … m`. What is not understood changes nothing. */
export function changed(look: Look, codes: string): Look {
  const numbers = codes.split(/[;:]/).map((word) => (word === "" ? 0 : Number(word)));
  let now = look;
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at] ?? 0;
    if (code === 0) now = ORDINARY;
    else if (code === 38 || code === 48) {
      const [colour, used] = extended(numbers.slice(at + 1));
      at += used;
      if (colour) now = { ...now, [code === 38 ? "ink" : "paper"]: colour };
    } else now = { ...now, ...(ON[code] ?? basic(code)) };
  }
  return now;
}

function basic(code: number): Partial<Look> {
  if (code >= 30 && code <= 37) return { ink: { index: code - 30 } };
  if (code >= 90 && code <= 97) return { ink: { index: code - 82 } };
  if (code >= 40 && code <= 47) return { paper: { index: code - 40 } };
  if (code >= 100 && code <= 107) return { paper: { index: code - 92 } };
  return {};
}

/** `5;N` or `2;R;G;B`, and how many numbers that were. */
function extended(numbers: number[]): [Colour, number] {
  const [kind, ...rest] = numbers;
  if (kind === 5 && rest.length >= 1) return [ofPalette(rest[0] ?? 0), 2];
  if (kind === 2 && rest.length >= 3) return [{ rgb: rest.slice(0, 3).map(byte) as [number, number, number] }, 4];
  return [null, numbers.length];
}

const CUBE = [0, 95, 135, 175, 215, 255];

function ofPalette(index: number): Colour {
  if (!(index >= 0 && index <= 255)) return null;
  if (index < 16) return { index };
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return { rgb: [grey, grey, grey] };
  }
  const at = index - 16;
  return { rgb: [CUBE[Math.floor(at / 36)] ?? 0, CUBE[Math.floor(at / 6) % 6] ?? 0, CUBE[at % 6] ?? 0] };
}

function byte(value: number): number {
  return Math.min(255, Math.max(0, Math.round(value) || 0));
}
