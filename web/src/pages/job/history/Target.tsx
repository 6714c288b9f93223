/** What an attempt ran on, as `targetOf` says it, with its figures. */
import { Told } from "@/parts/Told";
import { count } from "@/parts/words";
import { WAITING, type Attempt } from "@/pages/job/timeline/geometry";

/** `at`: where the attempt is in the answer. */
export function Target({ attempt, at }: { attempt: Attempt; at: string }) {
  const { machines } = attempt;
  const [first] = machines;
  if (first === undefined) return WAITING;
  return (
    <>
      <Place of={first} at={`${at}.machines.0`} />,{" "}
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

/** Who sells and where; of who sells in one place alone, its name. */
export function Place({ of, at }: { of: { provider: string; region: string }; at: string }) {
  if (of.provider === of.region) return of.provider;
  return (
    <>
      {of.provider} <Told at={`${at}.region`} value={of.region} />
    </>
  );
}
