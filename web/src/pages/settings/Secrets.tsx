/** Secrets by name: set and removed here, read by jobs alone. */
import { Button, Table, Text } from "@mantine/core";
import { useState } from "react";
import { api, told } from "@/api/client";
import { Confirm } from "@/parts/Confirm";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { When } from "@/parts/When";
import { mayChange, useMe } from "@/session/me";
import { NewSecretDialog } from "@/pages/settings/NewSecretDialog";
import { ownerQuery, ownerOptions } from "@/pages/settings/owners";
import { useChange, useSecrets, type Secret } from "@/pages/settings/queries";

const COLUMNS = [
  "Name",
  "Whose",
  { title: "Version", isNumber: true },
  "Set",
  "By",
  "Used",
  { title: "Actions", isOnlyHeard: true },
];

export function Secrets() {
  const query = useSecrets();
  const may = mayChange(useMe().data);
  const [isSetting, setIsSetting] = useState(false);
  const [removing, setRemoving] = useState<Secret | null>(null);
  const aside = may && (
    <Button size="xs" onClick={() => setIsSetting(true)}>
      Set a secret
    </Button>
  );
  return (
    <Panel title="Secrets" aside={aside}>
      <Text size="sm" className="dim">
        Names alone: no value is ever shown again. A job names what it needs under <code>secrets</code>.
      </Text>
      <Loaded query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No secret is set" command="crucible secret set HF_TOKEN" />
          ) : (
            <Rows label="Secrets" columns={COLUMNS} minWidth={640}>
              {items.map((secret) => (
                <Table.Tr key={`${secret.owner_kind} ${secret.owner} ${secret.name}`}>
                  <Table.Td className="mono">{secret.name}</Table.Td>
                  <Table.Td>{secret.owner_kind === "user" ? "yours" : `${secret.owner_kind} ${secret.owner}`}</Table.Td>
                  <Table.Td className="number">{secret.version}</Table.Td>
                  <Table.Td>
                    <When at={secret.set_at} />
                  </Table.Td>
                  <Table.Td>{secret.set_by}</Table.Td>
                  <Table.Td>
                    {secret.used_at === null ? <span className="dim">never</span> : <When at={secret.used_at} />}
                  </Table.Td>
                  <Table.Td ta="right">
                    {may && (
                      <Button
                        size="compact-xs"
                        color="red"
                        variant="light"
                        aria-label={`Remove the secret ${secret.name}`}
                        onClick={() => setRemoving(secret)}
                      >
                        Remove
                      </Button>
                    )}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Rows>
          )
        }
      </Loaded>
      <NewSecretDialog isOpen={isSetting} onClose={() => setIsSetting(false)} />
      <Removal secret={removing} onClose={() => setRemoving(null)} />
    </Panel>
  );
}

function Removal({ secret, onClose }: { secret: Secret | null; onClose: () => void }) {
  const remove = useChange(
    (one: Secret) =>
      told(
        api.DELETE("/v1/secrets/{name}", {
          params: { path: { name: one.name }, query: ownerQuery(one.owner_kind, one.owner) },
        }),
      ),
    [["secrets"]],
    onClose,
  );
  return (
    <Confirm
      title={`Remove ${secret?.name ?? ""}`}
      action="Remove"
      command={secret ? `crucible secret rm ${secret.name}${ownerOptions(secret.owner_kind, secret.owner)}` : undefined}
      isOpen={secret !== null}
      isPending={remove.isPending}
      error={remove.error}
      onClose={() => {
        remove.reset();
        onClose();
      }}
      onConfirm={() => secret && remove.mutate(secret)}
    >
      It is gone for good. Jobs that name it are refused until it is set again.
    </Confirm>
  );
}
