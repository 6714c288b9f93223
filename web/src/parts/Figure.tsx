/** One number that matters, what it is, and what it means. */
import { Paper, Text } from "@mantine/core";
import type { ReactNode } from "react";

export function Figure({ label, value, note }: { label: string; value: ReactNode; note?: ReactNode }) {
  return (
    <Paper withBorder p="sm" role="group" aria-label={label}>
      <Text size="xs" className="dim">
        {label}
      </Text>
      <Text fz="1.4rem" fw={600} lh={1.3} style={{ fontVariantNumeric: "tabular-nums" }} component="div">
        {value}
      </Text>
      {note && (
        <Text size="xs" className="dim" component="div">
          {note}
        </Text>
      )}
    </Paper>
  );
}
