/** How a log is looked at. It lives in the address; what is being written goes there when one pauses. */
import { numberOf, useAddress } from "@/parts/address";
import { useWritten } from "@/parts/written";

export interface Options {
  find: string;
  isTrouble: boolean;
  rank: number | null;
  attempt: number | null;
  isErrorsOnly: boolean;
  hasTimes: boolean;
  isWrapped: boolean;
}

const PAUSE_MS = 400;

export function useOptions(): [Options, (change: Partial<Options>) => void] {
  const [params, setParams] = useAddress();
  const [find, writeFind] = useWritten(params["find"] ?? "", (words) => setParams({ find: words }), PAUSE_MS);
  const options: Options = {
    find,
    isTrouble: params["errors"] === "1",
    rank: numberOf(params["rank"]),
    attempt: numberOf(params["attempt"]),
    isErrorsOnly: params["stderr"] === "1",
    hasTimes: params["times"] === "1",
    isWrapped: params["wrap"] === "1",
  };
  const change = (some: Partial<Options>) => {
    const next = { ...options, ...some };
    if (next.find !== find) writeFind(next.find);
    const [was, is] = [written(options), written(next)];
    if (JSON.stringify(was) !== JSON.stringify(is)) setParams(is);
  };
  return [options, change];
}

function written(options: Options) {
  const flag = (isOn: boolean) => (isOn ? "1" : undefined);
  return {
    errors: flag(options.isTrouble),
    rank: options.rank?.toString(),
    attempt: options.attempt?.toString(),
    stderr: flag(options.isErrorsOnly),
    times: flag(options.hasTimes),
    wrap: flag(options.isWrapped),
  };
}
