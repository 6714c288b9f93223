/** A moment, as long ago as it is; the local time and UTC on hover and focus. */
import { Tooltip } from "@mantine/core";
import { useId, useState, type ReactNode } from "react";
import { useNow } from "@/parts/now";
import { ago, localTime, utcTime } from "@/parts/words";

/** Inside these a stop of the tab key would be a second one for the same thing, or one for each row. */
const STOPS = "a, button, [role=button], [role=tab], td";

/** Written to the element, not to a state: a ref may be set with every render, and must not cause the next one. */
function makeStop(time: HTMLTimeElement | null) {
  if (time !== null && time.closest(STOPS) === null) time.tabIndex = 0;
}

export function When({ at, exact = false }: { at: string | null | undefined; exact?: boolean }) {
  if (!at) return <span className="dim">–</span>;
  return <Moment at={at}>{exact ? localTime(new Date(at)) : <Ago at={at} />}</Moment>;
}

function Ago({ at }: { at: string }) {
  return ago(new Date(at), useNow());
}

/** What is said of it is made when somebody points at it: there are moments in every row. */
function Moment({ at, children }: { at: string; children: ReactNode }) {
  const [place, setPlace] = useState<HTMLTimeElement | null>(null);
  const id = useId();
  const moment = new Date(at);
  const leave = () => setPlace(null);
  return (
    <>
      <time
        ref={makeStop}
        dateTime={at}
        aria-describedby={place ? id : undefined}
        onPointerEnter={(event) => setPlace(event.currentTarget)}
        onPointerLeave={leave}
        onFocus={(event) => setPlace(event.currentTarget)}
        onBlur={leave}
        onKeyDown={(event) => event.key === "Escape" && leave()}
      >
        {children}
      </time>
      {place && <Tooltip id={id} target={place} opened label={`${localTime(moment)} · ${utcTime(moment)}`} />}
    </>
  );
}
