/** Which rows are in view. Browsers stop counting pixels at some height: beyond it the scroll bar is scaled, and a pixel
 * of it is more than a pixel of text. */
export const ROW_PX = 20;
export const TALLEST_PX = 16_000_000;
const SPARE = 10; // rows drawn above and below, so that none is missing while one scrolls

export interface Window {
  first: number;
  /** Behind the last one. */
  end: number;
  /** Of the first one, from the top of what scrolls. */
  top: number;
}

export function heightOf(rows: number): number {
  return Math.min(rows * ROW_PX, TALLEST_PX);
}

function scaleOf(rows: number, view: number): number {
  const [all, box] = [rows * ROW_PX - view, heightOf(rows) - view];
  return all > 0 && box > 0 ? all / box : 1;
}

export function windowOf(rows: number, scroll: number, view: number): Window {
  const offset = Math.max(0, scroll) * scaleOf(rows, view);
  const first = Math.max(0, Math.min(Math.floor(offset / ROW_PX) - SPARE, rows));
  const end = Math.min(rows, Math.ceil((offset + view) / ROW_PX) + SPARE);
  return { first, end, top: Math.max(0, scroll) + first * ROW_PX - offset };
}

/** Where to scroll so that a row is the first one in view, or as near to it as can be. */
export function scrollTo(row: number, rows: number, view: number): number {
  const most = Math.max(0, heightOf(rows) - view);
  return Math.min(most, Math.max(0, (row * ROW_PX) / scaleOf(rows, view)));
}

export function rowAt(rows: number, scroll: number, view: number): number {
  return (Math.max(0, scroll) * scaleOf(rows, view)) / ROW_PX;
}
