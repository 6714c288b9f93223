import { Anchor, Group, Progress, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Shape } from "@/api/client";
import { StateBadge } from "@/parts/StateBadge";
import { When } from "@/parts/When";
import { percent, rate, usd } from "@/parts/words";
import type { Concern } from "@/pages/overview/attention";

type Brief = Shape<"JobBrief">;

export function JobLink({ id, children }: { id: string; children: ReactNode }) {
  return (
    <Anchor component={Link} to="/jobs/$jobId" params={{ jobId: id } as never} size="sm" fw={600} truncate>
      {children}
    </Anchor>
  );
}

export function Nothing({ children }: { children: string }) {
  return (
    <Text size="sm" className="dim">
      {children}
    </Text>
  );
}

/** What runs, how far it is, and what it costs. */
export function Running({ jobs }: { jobs: Brief[] }) {
  return (
    <Stack gap="sm" component="ul" p={0} m={0} style={{ listStyle: "none" }}>
      {jobs.map((job) => (
        <li key={job.id}>
          <Group justify="space-between" wrap="nowrap" gap="xs">
            <JobLink id={job.id}>{job.name}</JobLink>
            <Text size="xs" className="number">
              {usd(job.cost_usd)}
              {job.per_hour_usd > 0 && ` · ${rate(job.per_hour_usd)}`}
            </Text>
          </Group>
          <Group gap="xs" wrap="nowrap">
            <Progress
              value={(job.progress ?? 0) * 100}
              size="sm"
              style={{ flex: 1 }}
              aria-label={`progress of ${job.name}`}
            />
            <Text size="xs" className="number" w={40}>
              {percent(job.progress)}
            </Text>
          </Group>
        </li>
      ))}
    </Stack>
  );
}

/** What waits, and for what. */
export function Queue({ jobs }: { jobs: Brief[] }) {
  return (
    <Stack gap="sm" component="ul" p={0} m={0} style={{ listStyle: "none" }}>
      {jobs.map((job) => (
        <li key={job.id}>
          <Group justify="space-between" wrap="nowrap" gap="xs">
            <JobLink id={job.id}>{job.name}</JobLink>
            <Text size="xs" className="dim" component="div">
              <When at={job.created_at} />
            </Text>
          </Group>
          <Text size="xs" className="dim" lineClamp={2}>
            {job.reason ?? job.status}
          </Text>
        </li>
      ))}
    </Stack>
  );
}

/** What is over, how it ended, and what it came to. */
export function Ended({ jobs }: { jobs: Brief[] }) {
  return (
    <Stack gap="xs" component="ul" p={0} m={0} style={{ listStyle: "none" }}>
      {jobs.map((job) => (
        <li key={job.id}>
          <Group justify="space-between" wrap="nowrap" gap="xs">
            <JobLink id={job.id}>{job.name}</JobLink>
            <Group gap="xs" wrap="nowrap">
              <Text size="xs" className="number">
                {usd(job.cost_usd)}
              </Text>
              <StateBadge state={job.status} />
            </Group>
          </Group>
        </li>
      ))}
    </Stack>
  );
}

export function Attention({ found }: { found: Concern[] }) {
  return (
    <Stack gap="sm" component="ul" p={0} m={0} style={{ listStyle: "none" }}>
      {found.map((one) => (
        <li key={one.key}>
          <Group gap="xs" wrap="nowrap">
            <StateBadge state={one.state} />
            {one.jobId ? (
              <JobLink id={one.jobId}>{one.title}</JobLink>
            ) : (
              <Anchor component={Link} to="/budgets" size="sm" fw={600}>
                {one.title}
              </Anchor>
            )}
          </Group>
          <Text size="xs" className="dim" lineClamp={2}>
            {one.words}
          </Text>
        </li>
      ))}
    </Stack>
  );
}
