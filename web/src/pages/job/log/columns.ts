/** How many characters of a line fit beside its time and rank. */
const TIME = 14;
const RANK = 4;
const EDGES = 2;
const LEAST = 20;

interface Shown {
  hasTimes: boolean;
  isWrapped: boolean;
}

/** Null: lines are not wrapped. */
export function columnsIn(width: number, shown: Shown, hasRanks: boolean): number | null {
  if (!shown.isWrapped || width === 0) return null;
  const fit = Math.floor(width / letterPx()) - EDGES - (shown.hasTimes ? TIME : 0) - (hasRanks ? RANK : 0);
  return Math.max(LEAST, fit);
}

let known: number | null = null;

/** All letters of a log are equally wide: they are measured once. */
function letterPx(): number {
  if (known !== null) return known;
  const probe = document.createElement("span");
  Object.assign(probe.style, {
    position: "absolute",
    visibility: "hidden",
    whiteSpace: "pre",
    font: "12.5px var(--mantine-font-family-monospace)",
  });
  probe.textContent = "0".repeat(100);
  document.body.append(probe);
  known = probe.getBoundingClientRect().width / 100 || 7.5;
  probe.remove();
  return known;
}
