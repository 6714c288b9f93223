/** One notice: how grave, of what, when; and, if asked for, who was told of it and how that went. */
import { Anchor, Badge, Button, Collapse, Group, Paper, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link } from "@tanstack/react-router";
import { useId } from "react";
import type { Shape } from "@/api/client";
import { Deliveries } from "@/pages/alerts/Deliveries";
import type { Level } from "@/pages/alerts/words";
import { When } from "@/parts/When";

const COLOURS: Record<Level, string> = { info: "blue", warning: "orange", critical: "red" };

export function Notice({ notice }: { notice: Shape<"NoticeItem"> }) {
  const [isOpen, { toggle }] = useDisclosure(false);
  const id = useId();
  return (
    <Paper withBorder p="sm" component="article" aria-label={notice.title}>
      <Group justify="space-between" align="flex-start" gap="xs">
        <Group gap="xs" style={{ flex: "1 1 18rem", minWidth: 0 }}>
          <Badge variant="light" color={COLOURS[notice.severity]} tt="none">
            {notice.severity}
          </Badge>
          <Text fw={600} size="sm" style={{ overflowWrap: "anywhere" }}>
            {notice.title}
          </Text>
        </Group>
        <Text size="sm" className="dim" component="div">
          {notice.kind} · <When at={notice.at} />
        </Text>
      </Group>
      {notice.text && (
        <Text size="sm" mt={4} style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
          {notice.text}
        </Text>
      )}
      <Group gap="md" mt={4}>
        {notice.job && (
          <Anchor component={Link} to={`/jobs/${notice.job}`} size="sm">
            Open the job
          </Anchor>
        )}
        {notice.kind === "budget" && (
          <Anchor component={Link} to="/budgets" size="sm">
            Open budgets
          </Anchor>
        )}
        <Button
          size="compact-sm"
          variant="subtle"
          aria-expanded={isOpen}
          aria-controls={id}
          aria-label={`who was told: ${notice.title}`}
          onClick={toggle}
        >
          {isOpen ? "Hide who was told" : "Who was told"}
        </Button>
        <Text size="xs" className="dim">
          {[notice.team, notice.project, notice.user].filter(Boolean).join(" · ")}
        </Text>
      </Group>
      <Collapse expanded={isOpen} id={id}>
        {isOpen && <Deliveries seq={notice.seq} />}
      </Collapse>
    </Paper>
  );
}
