/** Who is told of what: rules of one's own and of one's teams. */
import { Button, Group, Stack } from "@mantine/core";
import { useState } from "react";
import { RuleDialog } from "@/pages/alerts/RuleDialog";
import { MuteRule, RemoveRule } from "@/pages/alerts/RuleActs";
import { RuleRow, type RuleAct } from "@/pages/alerts/RuleRow";
import { useChannels, useRules } from "@/pages/alerts/queries";
import { mayHave, type Rule } from "@/pages/alerts/words";
import { Command } from "@/parts/Command";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { useMe } from "@/session/me";

export function Rules() {
  const me = useMe();
  const channels = useChannels();
  const [isNew, setIsNew] = useState(false);
  const [doing, setDoing] = useState<{ act: RuleAct; rule: Rule } | null>(null);
  const close = () => setDoing(null);
  const known = channels.data?.items ?? [];
  return (
    <Panel
      title="Rules"
      aside={
        <Group gap="xs">
          <Command line="crucible alert ls" />
          {mayHave(me.data) && (
            <Button size="xs" onClick={() => setIsNew(true)}>
              New rule
            </Button>
          )}
        </Group>
      }
    >
      <Loaded query={useRules()}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No rules yet" command="crucible alert add failures --kind failure,deadline --to me">
              Without a rule notices are kept, and nobody is told.
            </Empty>
          ) : (
            <Stack>
              <Rows
                label="rules"
                minWidth={760}
                columns={["Rule", "Tells of", "To", "Quiet", "On", { title: "what to do", isOnlyHeard: true }]}
              >
                {items.map((rule) => (
                  <RuleRow key={rule.id} rule={rule} channels={known} onAct={(act) => setDoing({ act, rule })} />
                ))}
              </Rows>
            </Stack>
          )
        }
      </Loaded>
      {isNew && <RuleDialog channels={known} onClose={() => setIsNew(false)} />}
      {doing?.act === "change" && <RuleDialog rule={doing.rule} channels={known} onClose={close} />}
      {doing?.act === "mute" && <MuteRule rule={doing.rule} onClose={close} />}
      {doing?.act === "remove" && <RemoveRule rule={doing.rule} onClose={close} />}
    </Panel>
  );
}
