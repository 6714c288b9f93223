/** A figure of an answer of the API: written for people, and as it came, with its place in the answer, for whoever checks. */
interface Props {
  /** Where it is in the answer: `total.cost_usd`. */
  at: string;
  value: number | null | undefined;
  write: (value: number | null | undefined) => string;
}

export function Told({ at, value, write }: Props) {
  return (
    <span data-figure={at} data-value={value ?? ""}>
      {write(value)}
    </span>
  );
}
