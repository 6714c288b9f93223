/** Where the steps of a workflow are drawn: in layers from left to right, each after all that it needs, with few
 * crossings. Long arrows are led around the steps between. */

export interface Step {
  name: string;
  needs: string[];
}

export interface Box {
  name: string;
  x: number;
  y: number;
}

export interface Arrow {
  from: string;
  to: string;
  /** Through which it is led, from box to box. */
  points: [number, number][];
}

export interface Drawing {
  boxes: Box[];
  arrows: Arrow[];
  width: number;
  height: number;
}

export const BOX = { width: 176, height: 54 };
const GAP = { x: 56, y: 22 };
const MARGIN = 8;
/** So often rows are put in order, forth and back: more changes nothing for graphs that people write. */
const ROUNDS = 8;

interface Cell {
  name: string;
  /** Null: a bend of a long arrow. */
  step: string | null;
  before: string[];
  after: string[];
}

export function drawn(steps: Step[]): Drawing {
  const known = new Set(steps.map((step) => step.name));
  const edges = steps.flatMap((step) =>
    step.needs.filter((need) => known.has(need)).map((need) => [need, step.name] as const),
  );
  const layer = layers(steps, known);
  const rows = inRows(steps, edges, layer);
  order(rows);
  return measured(rows, edges, layer);
}

/** How many steps must end before each, one after another. What needs itself, however indirectly, ends the count. */
export function layers(steps: Step[], known: Set<string>): Map<string, number> {
  const byName = new Map(steps.map((step) => [step.name, step]));
  const found = new Map<string, number>();
  const depth = (name: string, above: Set<string>): number => {
    const before = found.get(name);
    if (before !== undefined) return before;
    if (above.has(name)) return 0;
    const needs = (byName.get(name)?.needs ?? []).filter((need) => known.has(need));
    const inside = new Set(above).add(name);
    const deepest = Math.max(-1, ...needs.map((need) => depth(need, inside)));
    found.set(name, deepest + 1);
    return deepest + 1;
  };
  for (const step of steps) depth(step.name, new Set());
  return found;
}

const bend = (from: string, to: string, at: number) => `${from}\u0000${to}\u0000${at}`;

function inRows(steps: Step[], edges: (readonly [string, string])[], layer: Map<string, number>): Cell[][] {
  const rows: Cell[][] = Array.from({ length: Math.max(0, ...layer.values()) + 1 }, () => []);
  const cells = new Map<string, Cell>();
  const add = (name: string, step: string | null, at: number) => {
    const cell: Cell = { name, step, before: [], after: [] };
    cells.set(name, cell);
    rows[at]?.push(cell);
  };
  for (const step of steps) add(step.name, step.name, layer.get(step.name) ?? 0);
  for (const [from, to] of edges) {
    const way = wayOf(from, to, layer);
    way.slice(1, -1).forEach((name, at) => add(name, null, (layer.get(from) ?? 0) + 1 + at));
    way.slice(1).forEach((name, at) => {
      cells.get(name)?.before.push(way[at] ?? from);
      cells.get(way[at] ?? from)?.after.push(name);
    });
  }
  return rows;
}

/** The cells that an arrow passes, its ends included. */
function wayOf(from: string, to: string, layer: Map<string, number>): string[] {
  const bends = [];
  for (let at = (layer.get(from) ?? 0) + 1; at < (layer.get(to) ?? 0); at += 1) bends.push(bend(from, to, at));
  return [from, ...bends, to];
}

/** Each cell goes to the middle of its neighbours, row by row. */
function order(rows: Cell[][]): void {
  for (let round = 0; round < ROUNDS; round += 1) {
    const isForth = round % 2 === 0;
    const way = isForth ? rows.slice(1) : rows.slice(0, -1).reverse();
    for (const row of way) {
      const at = rows.indexOf(row);
      const beside = new Map((rows[isForth ? at - 1 : at + 1] ?? []).map((cell, index) => [cell.name, index]));
      const wanted = new Map(
        row.map((cell, index) => [cell, middle(isForth ? cell.before : cell.after, beside) ?? index]),
      );
      row.sort((a, b) => (wanted.get(a) ?? 0) - (wanted.get(b) ?? 0));
    }
  }
}

function middle(names: string[], places: Map<string, number>): number | null {
  const found = names.flatMap((name) => places.get(name) ?? []);
  return found.length === 0 ? null : found.reduce((sum, at) => sum + at, 0) / found.length;
}

function measured(rows: Cell[][], edges: (readonly [string, string])[], layer: Map<string, number>): Drawing {
  const tallest = Math.max(1, ...rows.map((row) => row.length));
  const height = tallest * (BOX.height + GAP.y) - GAP.y;
  const at = new Map<string, [number, number]>();
  rows.forEach((row, column) => {
    const top = (height - (row.length * (BOX.height + GAP.y) - GAP.y)) / 2;
    row.forEach((cell, index) =>
      at.set(cell.name, [MARGIN + column * (BOX.width + GAP.x), MARGIN + top + index * (BOX.height + GAP.y)]),
    );
  });
  const boxes = rows.flat().flatMap((cell) => (cell.step === null ? [] : [boxOf(cell.step, at.get(cell.name))]));
  const arrows = edges.map(([from, to]) => ({ from, to, points: pointsOf(wayOf(from, to, layer), at) }));
  return {
    boxes,
    arrows,
    width: 2 * MARGIN + rows.length * (BOX.width + GAP.x) - GAP.x,
    height: 2 * MARGIN + height,
  };
}

function boxOf(name: string, corner: [number, number] = [0, 0]): Box {
  return { name, x: corner[0], y: corner[1] };
}

function pointsOf(way: string[], corners: Map<string, [number, number]>): [number, number][] {
  return way.flatMap((name, index): [number, number][] => {
    const [x, y] = corners.get(name) ?? [0, 0];
    const mid = y + BOX.height / 2;
    if (index === 0) return [[x + BOX.width, mid]];
    if (index === way.length - 1) return [[x, mid]];
    return [
      [x, mid],
      [x + BOX.width, mid],
    ];
  });
}

/** An arrow as a path of soft curves. */
export function curve(points: [number, number][]): string {
  const [first, ...others] = points;
  if (first === undefined) return "";
  let [x, y] = first;
  let path = `M${x},${y}`;
  for (const [toX, toY] of others) {
    const half = (x + toX) / 2;
    path += y === toY ? `H${toX}` : `C${half},${y} ${half},${toY} ${toX},${toY}`;
    [x, y] = [toX, toY];
  }
  return path;
}
