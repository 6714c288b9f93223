/** A figure as the API told it: `name` is where it stands in the answer, and the number itself is kept beside what is
 * written, so that anybody can hold one against the other. */
import type { ReactNode } from "react";

interface Props {
  of: "status" | "costs";
  name: string;
  value: number | null | undefined;
  children: ReactNode;
}

export function Told({ of, name, value, children }: Props) {
  return (
    <span data-source={of} data-figure={name} data-value={value ?? ""}>
      {children}
    </span>
  );
}
