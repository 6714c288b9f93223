/** A moment, as long ago as it is; the local time and UTC on hover and focus. */
import { Tooltip } from "@mantine/core";
import { useNow } from "@/parts/now";
import { ago, localTime, utcTime } from "@/parts/words";

/** Inside these a stop of the tab key would be a second one for the same thing, or one for each row. */
const STOPS = "a, button, [role=button], [role=tab], td";

/** Written to the element, not to a state: a ref may be set with every render, and must not cause the next one. */
function makeStop(time: HTMLTimeElement | null) {
  if (time !== null && time.closest(STOPS) === null) time.tabIndex = 0;
}

export function When({ at, exact = false }: { at: string | null | undefined; exact?: boolean }) {
  const now = useNow();
  if (!at) return <span className="dim">–</span>;
  const moment = new Date(at);
  return (
    <Tooltip label={`${localTime(moment)} · ${utcTime(moment)}`} events={{ hover: true, focus: true, touch: true }}>
      <time ref={makeStop} dateTime={at}>
        {exact ? localTime(moment) : ago(moment, now)}
      </time>
    </Tooltip>
  );
}
