/** Which channels were told of a notice, and what became of each try. */
import { Badge, Table, Text } from "@mantine/core";
import { useDeliveries } from "@/pages/alerts/queries";
import { Loaded } from "@/parts/Loaded";
import { Rows } from "@/parts/Rows";
import { When } from "@/parts/When";

const STATES = {
  sent: { colour: "green", words: "sent" },
  waiting: { colour: "blue", words: "waiting" },
  dead: { colour: "red", words: "given up" },
};

export function Deliveries({ seq }: { seq: number }) {
  return (
    <Loaded query={useDeliveries(seq)} lines={1}>
      {({ items }) =>
        items.length === 0 ? (
          <Text size="sm" className="dim">
            No rule that you see sent it anywhere.
          </Text>
        ) : (
          <Rows
            label="who was told"
            columns={["Channel", "State", { title: "Tries", isNumber: true }, "When", "What went wrong"]}
          >
            {items.map((one) => (
              <Table.Tr key={one.id}>
                <Table.Td>{one.channel}</Table.Td>
                <Table.Td>
                  <Badge variant="light" color={STATES[one.state].colour} tt="none">
                    {STATES[one.state].words}
                  </Badge>
                </Table.Td>
                <Table.Td className="number">{one.tries}</Table.Td>
                <Table.Td>
                  {one.state === "waiting" && "next try "}
                  <When at={one.ended_at ?? one.not_before} />
                </Table.Td>
                <Table.Td>{one.error ?? "–"}</Table.Td>
              </Table.Tr>
            ))}
          </Rows>
        )
      }
    </Loaded>
  );
}
