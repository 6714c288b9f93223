/** What a plan would choose for the workload: with risk, start and interruptions in it, which a price has not. */
import { Alert, Button, Group, List, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { searchOf, specOf, type Workload } from "@/pages/compare/workload";
import { choiceOf, costRange, enablingOf, linesAbout, marketOf, placeOf, type Plan } from "@/pages/submit/plan-rows";
import { planQuery } from "@/pages/submit/queries";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { duration } from "@/parts/words";

export function Recommended({ workload }: { workload: Workload }) {
  const plan = useQuery(planQuery(specOf(workload)));
  return (
    <Panel title="Recommended">
      <Loaded query={plan} lines={4}>
        {(made) => <Card plan={made} />}
      </Loaded>
      <Group>
        <Button variant="default" renderRoot={(props) => <Link to="/submit" search={searchOf(workload)} {...props} />}>
          Write this job
        </Button>
      </Group>
    </Panel>
  );
}

function Card({ plan }: { plan: Plan }) {
  const one = choiceOf(plan);
  const enabling = enablingOf(plan);
  if (one === null) return <Text size="sm">No place now: {plan.reason ?? "nothing fits"}</Text>;
  return (
    <Stack gap="xs">
      <div>
        <Text fw={600}>
          {placeOf(one)} · {one.count} × {one.instance_type} · {marketOf(one)}
        </Text>
        <Text fz="1.4rem" fw={600}>
          {costRange(one)}
        </Text>
        <Text size="sm">
          {one.why}; starts in {duration(one.start_s)}
        </Text>
      </div>
      {linesAbout(one).length > 0 && (
        <Text size="xs" className="dim">
          {linesAbout(one).join(" · ")}
        </Text>
      )}
      {plan.alternatives.length > 0 && (
        <List size="xs" className="dim">
          {plan.alternatives.slice(0, 3).map((other) => (
            <List.Item key={other.offer}>
              {placeOf(other)} {marketOf(other)}, {costRange(other)}: {other.why}
            </List.Item>
          ))}
        </List>
      )}
      {enabling && (
        <Alert color="yellow" variant="light" p="xs">
          <Text size="sm">{enabling}</Text>
        </Alert>
      )}
    </Stack>
  );
}
