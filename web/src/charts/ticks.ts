/** Round figures up to `most`, from zero, for the side of a chart: few, and the last one at or above it. */
export function ticksUpTo(most: number, few = 4): number[] {
  if (!(most > 0)) return [0, 1];
  const step = roundUp(most / few);
  const count = Math.ceil(most / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, at) => Number((at * step).toPrecision(12)));
}

function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const round = [1, 2, 2.5, 5, 10].find((one) => one * power >= value * (1 - 1e-9)) ?? 10;
  return round * power;
}

const DAY_S = 86_400;

/** Moments on an axis (seconds since 1970), as short as they can be where they stand `step` seconds apart; a day is said
 * where it begins, and at the first. */
export function timeWords(moments: number[], step: number): string[] {
  const days = moments.map((at) => dayOf(new Date(at * 1000)));
  return moments.map((at, index) => {
    if (step >= DAY_S) return days[index] ?? "";
    const time = timeOf(new Date(at * 1000), step < 60);
    return days[index] === days[index - 1] ? time : `${time}\n${days[index]}`;
  });
}

function dayOf(at: Date): string {
  return at.toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

function timeOf(at: Date, hasSeconds: boolean): string {
  const two = "2-digit";
  return at.toLocaleTimeString(undefined, {
    hour: two,
    minute: two,
    ...(hasSeconds ? { second: two } : {}),
    hourCycle: "h23",
  });
}
