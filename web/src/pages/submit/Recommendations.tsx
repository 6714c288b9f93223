/** What the code needs and which backends suit it, the best first; each can be put into the job file. */
import { Alert, Badge, Button, Group, List, Progress, SimpleGrid, Paper, Stack, Text } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { Shape } from "@/api/client";
import { Findings } from "@/pages/submit/Findings";
import type { Recommendations as Answer } from "@/pages/submit/queries";
import classes from "@/pages/submit/submit.module.css";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { duration, rate, usd } from "@/parts/words";

type Backend = Shape<"BackendRecommendation">;

interface Props {
  query: UseQueryResult<Answer>;
  onApply: (specYaml: string) => void;
  onBackend: (offer: NonNullable<Backend["offer"]>) => void;
}

const SHOWN = 6;

export function Recommendations({ query, onApply, onBackend }: Props) {
  const isOld = query.isPlaceholderData || query.isFetching;
  return (
    <Panel
      title="Recommended for this code"
      aside={
        <Group gap="xs">
          {isOld && (
            <Badge variant="light" color="blue" tt="none">
              updating
            </Badge>
          )}
          <Button size="xs" disabled={!query.data} onClick={() => query.data && onApply(query.data.spec_yaml)}>
            Apply to the spec
          </Button>
        </Group>
      }
    >
      <Loaded query={query} lines={5}>
        {(said) => (
          <Stack gap="sm" className={isOld ? classes.old : undefined}>
            <Text size="xs" className="dim">
              {[said.hours_basis, ...said.assumptions, ...said.notes].filter(Boolean).join(" · ")}
            </Text>
            {said.recommendations.length === 0 && (
              <Alert color="yellow" variant="light">
                No backend fits this code as it is.
              </Alert>
            )}
            <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="sm">
              {said.recommendations.slice(0, SHOWN).map((one, at) => (
                <Card key={one.backend} one={one} isBest={at === 0} onBackend={onBackend} />
              ))}
            </SimpleGrid>
            <Findings said={said} />
          </Stack>
        )}
      </Loaded>
    </Panel>
  );
}

const COLOURS = { available: "green", limited: "yellow", queued: "orange" };

function Card({ one, isBest, onBackend }: { one: Backend; isBest: boolean; onBackend: Props["onBackend"] }) {
  const { costEstimate: cost, availability, offer } = one;
  return (
    <Paper withBorder p="sm" component="article" aria-label={one.backend}>
      <Stack gap={6} h="100%">
        <Group justify="space-between" wrap="nowrap">
          <Text fw={600}>{one.backend}</Text>
          <Group gap={4}>
            {isBest && <Badge tt="none">best</Badge>}
            {!one.enabled && (
              <Badge variant="default" tt="none">
                not enabled
              </Badge>
            )}
          </Group>
        </Group>
        <Group gap="xs" wrap="nowrap">
          <Progress value={one.score * 100} flex={1} aria-label={`score ${Math.round(one.score * 100)} of 100`} />
          <Text size="xs">{Math.round(one.score * 100)} / 100</Text>
        </Group>
        <Text size="sm">
          {cost.total === null ? rate(cost.hourly) : `${usd(cost.total)} in all`}
          <span className="dim">
            {cost.total === null ? "" : ` · ${rate(cost.hourly)}`} · confidence {cost.confidence}
          </span>
        </Text>
        <Group gap={6}>
          <Badge variant="light" color={COLOURS[availability.status]} tt="none" title={availability.basis}>
            {availability.status}
          </Badge>
          {availability.waitTime !== null && (
            <Text size="xs" className="dim">
              starts in {duration(availability.waitTime)}
            </Text>
          )}
        </Group>
        {offer && (
          <Text size="xs" className="dim">
            {offer.count} × {offer.instance_type} in {offer.region}
          </Text>
        )}
        <List size="xs" spacing={2} style={{ flex: 1 }}>
          {one.pros.map((word) => (
            <List.Item key={word} icon={<Mark good />}>
              {word}
            </List.Item>
          ))}
          {one.cons.map((word) => (
            <List.Item key={word} icon={<Mark />}>
              {word}
            </List.Item>
          ))}
        </List>
        {offer && (
          <Button
            size="compact-sm"
            variant="default"
            onClick={() => onBackend(offer)}
            aria-label={`use ${one.backend}`}
          >
            Use {one.backend}
          </Button>
        )}
      </Stack>
    </Paper>
  );
}

function Mark({ good = false }: { good?: boolean }) {
  return (
    <span style={{ color: good ? "var(--good)" : "var(--bad)" }} role="img" aria-label={good ? "for it" : "against it"}>
      {good ? "+" : "−"}
    </span>
  );
}
