/** What shall go wrong: the rules, how often each struck, and more of them. */
import { Button, Table, Text } from "@mantine/core";
import { useState } from "react";
import { Confirm } from "@/parts/Confirm";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { count } from "@/parts/words";
import { isAdmin, useMe } from "@/session/me";
import { FaultDialog } from "@/pages/lab/FaultDialog";
import { faultWords } from "@/pages/lab/words";
import { useFaults, useMend, type Fault } from "@/pages/lab/queries";

const COLUMNS = ["Rule", "When", { title: "Struck", isNumber: true }, { title: "Actions", isOnlyHeard: true }];

export function Faults() {
  const query = useFaults();
  const [isAdding, setIsAdding] = useState(false);
  const [removing, setRemoving] = useState<Fault | null>(null);
  const mayBreak = isAdmin(useMe().data);
  const aside = mayBreak && (
    <Button size="xs" variant="light" onClick={() => setIsAdding(true)}>
      Add a fault
    </Button>
  );
  return (
    <Panel title="Faults" aside={aside}>
      <Loaded query={query}>
        {({ items, kinds }) => (
          <>
            {items.length === 0 ? (
              <Empty
                title="Nothing is made to go wrong"
                command="crucible lab fail --kind throttle --probability 0.2 --for 5m"
              />
            ) : (
              <Rows label="Rules of faults" columns={COLUMNS} minWidth={420}>
                {items.map((rule) => (
                  <Line key={rule.id} rule={rule} does={kinds.find((one) => one.kind === rule.kind)?.does}>
                    {mayBreak && (
                      <Button
                        size="compact-xs"
                        variant="subtle"
                        aria-label={`Remove the fault ${rule.id}`}
                        onClick={() => setRemoving(rule)}
                      >
                        Remove
                      </Button>
                    )}
                  </Line>
                ))}
              </Rows>
            )}
            <FaultDialog kinds={kinds} isOpen={isAdding} onClose={() => setIsAdding(false)} />
          </>
        )}
      </Loaded>
      <Removal rule={removing} onClose={() => setRemoving(null)} />
    </Panel>
  );
}

function Line({ rule, does, children }: { rule: Fault; does: string | undefined; children: React.ReactNode }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm" fw={600}>
          {rule.kind}
        </Text>
        <Text size="xs" className="dim">
          {does}
        </Text>
      </Table.Td>
      <Table.Td>{faultWords(rule)}</Table.Td>
      <Table.Td className="number" style={{ whiteSpace: "nowrap" }}>
        {count(rule.struck)} of {count(rule.asked)}
      </Table.Td>
      <Table.Td>{children}</Table.Td>
    </Table.Tr>
  );
}

function Removal({ rule, onClose }: { rule: Fault | null; onClose: () => void }) {
  const mend = useMend(onClose);
  return (
    <Confirm
      title={`Remove ${rule?.kind ?? "the fault"}`}
      action="Remove"
      isSafe
      command={`crucible lab fail --clear ${rule?.id ?? ""}`}
      isOpen={rule !== null}
      isPending={mend.isPending}
      error={mend.error}
      onClose={() => {
        mend.reset();
        onClose();
      }}
      onConfirm={() => rule && mend.mutate(rule.id)}
    >
      <Text size="sm">It goes wrong no more. What it did so far stays done.</Text>
    </Confirm>
  );
}
