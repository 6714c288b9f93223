/** Which colour stands for what. */
import { Group, Text } from "@mantine/core";
import classes from "@/charts/BarChart.module.css";

export function Legend({ parts }: { parts: string[] }) {
  return (
    <Group gap="md" mb="xs">
      {parts.map((part, index) => (
        <Group key={part} gap={6} wrap="nowrap">
          <span className={classes.key} style={{ background: `var(--series-${(index % 6) + 1})` }} />
          <Text size="xs">{part}</Text>
        </Group>
      ))}
    </Group>
  );
}
