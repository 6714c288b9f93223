/** What an attempt ran on, as `targetOf` says it, with its figures. */
import { Told } from "@/parts/Told";
import { count } from "@/parts/words";
import { placeOf, WAITING, type Attempt } from "@/pages/job/timeline/geometry";

/** `at`: where the attempt is in the answer. */
export function Target({ attempt, at }: { attempt: Attempt; at: string }) {
  const { machines } = attempt;
  const [first] = machines;
  if (first === undefined) return WAITING;
  return (
    <>
      {placeOf(first)},{" "}
      {machines.length > 1 && (
        <>
          <Told at={`${at}.machines.length`} value={machines.length} write={count} /> ×{" "}
        </>
      )}
      <Told at={`${at}.machines.0.instance_type`} value={first.instance_type} />
      {first.is_spot && " spot"}
    </>
  );
}
