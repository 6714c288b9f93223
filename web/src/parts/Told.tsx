/** A figure as the API told it: written for people, and beside it, for whoever checks, as it came and where it stands in
 * which answer. */
import { DASH } from "@/parts/words";

interface Props<Value extends number | string> {
  /** Where it is in the answer: `total.cost_usd`. `a..b` is the time between two moments, in seconds; `a/b` a share;
   * `rows[kind=x]` the row of x, or nothing where there is none. */
  at: string;
  /** The address of the answer; missing where something around it says so (`data-answer`). */
  of?: string;
  value: Value | null | undefined;
  write?: (value: Value) => string;
}

export function Told<Value extends number | string>({ at, of, value, write = String }: Props<Value>) {
  return (
    <span data-figure={at} data-answer={of} data-value={value ?? ""}>
      {value === null || value === undefined ? DASH : write(value)}
    </span>
  );
}
