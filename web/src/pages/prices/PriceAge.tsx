/** How old a price is, and who told it; an old one says so. */
import { Badge, Tooltip } from "@mantine/core";
import { useNow } from "@/parts/now";
import { duration, localTime } from "@/parts/words";

export function PriceAge({ asOf, isStale, source }: { asOf: string; isStale: boolean; source: string }) {
  const now = useNow();
  const age = duration((now.getTime() - new Date(asOf).getTime()) / 1000);
  return (
    <Tooltip label={`${localTime(new Date(asOf))} · ${source}`} multiline maw={360}>
      <Badge tabIndex={0} variant="light" color={isStale ? "orange" : "green"} tt="none" miw="max-content">
        {isStale ? `stale, ${age}` : age}
      </Badge>
    </Tooltip>
  );
}
