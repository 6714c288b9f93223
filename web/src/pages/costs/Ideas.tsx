/** Other ways to run the rest of jobs, each for itself. */
import { Anchor, Badge, Table, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { Shape } from "@/api/client";
import { Told } from "@/parts/Told";
import { count, usd } from "@/parts/words";

type Available = Shape<"Available">;

export function Ideas({ available, answer }: { available: Available; answer: string }) {
  const { ideas, jobs, unknown, is_partial } = available;
  return (
    <>
      {ideas.length > 0 && <IdeaTable ideas={ideas} answer={answer} />}
      <Text size="sm" data-answer={answer}>
        {ideas.length === 0 && "Nothing better is known. "}
        <Told at="available.jobs" value={jobs} write={count} /> {jobs === 1 ? "job" : "jobs"} looked at
        {unknown > 0 && (
          <>
            , <Told at="available.unknown" value={unknown} write={count} /> without an estimate or of many tasks
          </>
        )}
        {is_partial && "; there are more than were looked at"}.
      </Text>
    </>
  );
}

function IdeaTable({ ideas, answer }: { ideas: Available["ideas"]; answer: string }) {
  return (
    <Table.ScrollContainer minWidth={600} tabIndex={0} role="region" aria-label="could be saved" data-answer={answer}>
      <Table verticalSpacing={6}>
        <Table.Thead>
          <Table.Tr>
            {["Job", "Other", "On"].map((column) => (
              <Table.Th key={column} scope="col">
                {column}
              </Table.Th>
            ))}
            {["Now", "Then", "Saves"].map((column) => (
              <Table.Th key={column} scope="col" className="number">
                {column}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {ideas.map((idea, at) => (
            <Table.Tr key={at}>
              <Table.Td style={{ whiteSpace: "nowrap" }}>
                <Anchor component={Link} to={`/jobs/${idea.job_id}`} size="sm">
                  {idea.job_name}
                </Anchor>
              </Table.Td>
              <Table.Td>{idea.move}</Table.Td>
              <Table.Td>
                {idea.count > 1 && (
                  <>
                    <Told at={`available.ideas.${at}.count`} value={idea.count} write={count} /> ×{" "}
                  </>
                )}
                <Told at={`available.ideas.${at}.instance_type`} value={idea.instance_type} /> in {idea.provider}/
                <Told at={`available.ideas.${at}.region`} value={idea.region} />
                {idea.is_spot && ", spot"}{" "}
                {!idea.is_enabled && (
                  <Badge size="sm" variant="light" color="gray" tt="none">
                    not enabled
                  </Badge>
                )}
              </Table.Td>
              {(["now_usd", "then_usd", "saves_usd"] as const).map((name) => (
                <Table.Td key={name} className="number">
                  <Told at={`available.ideas.${at}.${name}`} value={idea[name]} write={usd} />
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
