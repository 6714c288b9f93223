/** Where in a job file a position is: the names that lead there. It goes by indentation, so that it also knows where one
 * is in text that is not finished and cannot be parsed. Brackets are followed within their line. */
import { ITEM, type Step } from "@/pages/submit/schema";

export interface Place {
  /** Of the mapping or list that is written in, or of the value where `isValue`. */
  path: Step[];
  isValue: boolean;
  isInBrackets: boolean;
  /** What was written of it already, and where that begins. */
  word: string;
  from: number;
  /** Columns before the name that is being written. */
  indent: number;
  /** Names that the same mapping has. */
  taken: string[];
}

interface Entry {
  column: number;
  /** A name, or ITEM for the dash of a list. */
  step: Step;
}

const KEY = /^(["']?)([\w.-]+)\1\s*:(?=\s|$)/;

export function placeAt(text: string, position: number): Place | null {
  const start = text.lastIndexOf("\n", position - 1) + 1;
  const before = text.slice(start, position);
  if (isComment(before)) return null;
  const above = text.slice(0, start).split("\n").slice(0, -1);
  const { entries, rest, restColumn } = read(before);
  const named = entries.filter((entry) => entry.step !== ITEM);
  const own = named[named.length - 1];
  const parents = climb(above, entries, own?.column ?? restColumn);
  const path: Step[] = own === undefined ? parents : [...parents, own.step];
  const brackets = within(rest);
  if (brackets !== null)
    return { ...brackets, path: [...path, ...brackets.path], from: position - brackets.word.length, indent: 0 };
  const isList = own === undefined && entries.length > 0;
  return {
    path,
    isValue: own !== undefined,
    isInBrackets: false,
    word: rest,
    from: position - rest.length,
    indent: own?.column ?? restColumn,
    taken: own === undefined ? siblings(text, start, restColumn, isList) : [],
  };
}

/** The path of the name under a position, for what is said about it; null where there is none. */
export function nameAt(text: string, position: number): { path: Step[]; from: number; to: number } | null {
  let from = position;
  let to = position;
  while (from > 0 && /[\w.-]/.test(text.charAt(from - 1))) from -= 1;
  while (/[\w.-]/.test(text.charAt(to))) to += 1;
  if (from === to || !/^["']?\s*:(\s|$)/.test(text.slice(to, to + 3))) return null;
  const place = placeAt(text, from);
  return place === null || place.isValue ? null : { path: [...place.path, text.slice(from, to)], from, to };
}

function isComment(before: string): boolean {
  return /(^|\s)#/.test(before.replace(/"[^"]*"|'[^']*'/g, '""'));
}

/** Dashes and a name at the beginning of a line, and what follows them. */
function read(line: string): { entries: Entry[]; rest: string; restColumn: number } {
  const entries: Entry[] = [];
  let column = line.length - line.trimStart().length;
  for (let dash = /^-\s+/.exec(line.slice(column)); dash; dash = /^-\s+/.exec(line.slice(column))) {
    entries.push({ column, step: ITEM });
    column += dash[0].length;
  }
  const key = KEY.exec(line.slice(column));
  if (key === null) return { entries, rest: line.slice(column), restColumn: column };
  entries.push({ column, step: key[2] ?? "" });
  const value = line.slice(column + key[0].length);
  return { entries, rest: value.trimStart(), restColumn: column + key[0].length + 1 };
}

/** The names above a column, the outermost first. */
function climb(above: string[], here: Entry[], column: number): Step[] {
  const path: Step[] = [];
  let limit = column;
  let isDash = false;
  const rows = above.filter((line) => !line.trimStart().startsWith("#")).flatMap((line) => read(line).entries);
  for (const entry of [...rows, ...here].reverse()) {
    const isAbove = entry.column < limit || (isDash && entry.step !== ITEM && entry.column === limit);
    if (!isAbove) continue;
    path.unshift(entry.step);
    limit = entry.column;
    isDash = entry.step === ITEM;
  }
  return path;
}

/** Names at the same column, up and down to where the mapping ends. */
function siblings(text: string, lineStart: number, column: number, isFirst: boolean): string[] {
  const up = isFirst ? [] : text.slice(0, lineStart).split("\n").reverse();
  const down = text.slice(lineStart).split("\n").slice(1);
  return [...along(up, column, true), ...along(down, column, false)];
}

function along(lines: string[], column: number, isUp: boolean): string[] {
  const names: string[] = [];
  for (const line of lines) {
    if (line.trim() === "" || line.trimStart().startsWith("#")) continue;
    const entries = read(line).entries;
    const first = entries[0]?.column ?? line.length - line.trimStart().length;
    const isEnd = first < column; // on the way up, a dash before a name of ours begins our own item
    if (!isEnd || isUp)
      names.push(...entries.flatMap(({ column: at, step }) => (at === column && step !== ITEM ? [step] : [])));
    if (isEnd) break;
  }
  return names;
}

/** Inside { } or [ ] that are open at the end; null outside. */
function within(rest: string): Pick<Place, "path" | "isValue" | "isInBrackets" | "word" | "taken"> | null {
  const open: { isMap: boolean; key: string | null; taken: string[] }[] = [];
  let word = "";
  for (const char of rest) {
    const inner = open[open.length - 1];
    if (char === "{" || char === "[") open.push({ isMap: char === "{", key: null, taken: [] });
    else if (char === "}" || char === "]") open.pop();
    else if (char === ":" && inner?.isMap && inner.key === null) {
      inner.key = word.trim().replace(/^["']|["']$/g, "");
      inner.taken.push(inner.key);
    } else if (char === "," && inner) inner.key = null;
    else {
      word += char;
      continue;
    }
    word = "";
  }
  const inner = open[open.length - 1];
  if (inner === undefined) return null;
  const path = open.flatMap((one): Step[] => (one.isMap ? (one.key === null ? [] : [one.key]) : [ITEM]));
  const isValue = !inner.isMap || inner.key !== null;
  return { path, isValue, isInBrackets: true, word: word.trimStart(), taken: inner.taken };
}
