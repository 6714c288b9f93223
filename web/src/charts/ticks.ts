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
