/** Tokens: yours, and everybody's for admins. */
import { Badge, Button, Switch, Group, Table, Text } from "@mantine/core";
import { useState } from "react";
import { api, told } from "@/api/client";
import { Confirm } from "@/parts/Confirm";
import { Empty } from "@/parts/Empty";
import { Loaded } from "@/parts/Loaded";
import { useNow } from "@/parts/now";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { When } from "@/parts/When";
import { useMe } from "@/session/me";
import { NewTokenDialog } from "@/pages/settings/NewTokenDialog";
import { tokenState } from "@/pages/settings/token-words";
import { useChange, useTokens, type Token } from "@/pages/settings/queries";

const COLUMNS = ["Name", "User", "Good for", "State", "Made", "Expires", { title: "Actions", isOnlyHeard: true }];
const COLOURS = { valid: "green", expired: "orange", revoked: "gray" };

export function Tokens() {
  const query = useTokens();
  const me = useMe().data;
  const [isMaking, setIsMaking] = useState(false);
  const [hasOld, setHasOld] = useState(false);
  const [revoking, setRevoking] = useState<Token | null>(null);
  const now = useNow();
  const aside = (
    <Group>
      <Switch
        size="xs"
        label="also those that are over"
        checked={hasOld}
        onChange={(event) => setHasOld(event.currentTarget.checked)}
      />
      <Button size="xs" onClick={() => setIsMaking(true)}>
        New token
      </Button>
    </Group>
  );
  return (
    <Panel title="Tokens" aside={aside}>
      <Loaded query={query}>
        {({ items }) => {
          const shown = items.filter((token) => hasOld || tokenState(token, now) === "valid");
          if (shown.length === 0) return <Empty title="No token" command="crucible token create laptop" />;
          return (
            <Rows label="Tokens" columns={COLUMNS} minWidth={760}>
              {shown.map((token) => (
                <Row key={token.id} token={token} isOwn={token.id === me?.token_id} now={now} onRevoke={setRevoking} />
              ))}
            </Rows>
          );
        }}
      </Loaded>
      <NewTokenDialog isOpen={isMaking} onClose={() => setIsMaking(false)} />
      <Revocation token={revoking} onClose={() => setRevoking(null)} />
    </Panel>
  );
}

interface RowProps {
  token: Token;
  isOwn: boolean;
  now: Date;
  onRevoke: (token: Token) => void;
}

function Row({ token, isOwn, now, onRevoke }: RowProps) {
  const state = tokenState(token, now);
  return (
    <Table.Tr>
      <Table.Td>
        {token.name}{" "}
        {isOwn && (
          <Badge variant="light" size="sm" tt="none">
            this page
          </Badge>
        )}
      </Table.Td>
      <Table.Td>{token.user_id}</Table.Td>
      <Table.Td>{token.grants.join(", ") || "everything"}</Table.Td>
      <Table.Td>
        <Badge variant="light" color={COLOURS[state]} tt="none">
          {state}
        </Badge>
      </Table.Td>
      <Table.Td>
        <When at={token.created_at} />
      </Table.Td>
      <Table.Td>
        {token.expires_at === null ? <span className="dim">never</span> : <When at={token.expires_at} />}
      </Table.Td>
      <Table.Td ta="right">
        {state === "valid" && (
          <Button
            size="compact-xs"
            color="red"
            variant="light"
            aria-label={`Revoke ${token.name}`}
            onClick={() => onRevoke(token)}
          >
            Revoke
          </Button>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

function Revocation({ token, onClose }: { token: Token | null; onClose: () => void }) {
  const revoke = useChange(
    (token_id: string) => told(api.DELETE("/v1/tokens/{token_id}", { params: { path: { token_id } } })),
    [["tokens"]],
    onClose,
  );
  const isOwn = token?.id === useMe().data?.token_id;
  return (
    <Confirm
      title={`Revoke ${token?.name ?? ""}`}
      action="Revoke"
      command={`crucible token revoke ${token?.id ?? ""}`}
      isOpen={token !== null}
      isPending={revoke.isPending}
      error={revoke.error}
      onClose={() => {
        revoke.reset();
        onClose();
      }}
      onConfirm={() => token && revoke.mutate(token.id)}
    >
      <Text size="sm">
        It opens nothing any more, and cannot be made good again.
        {isOwn && " It is the one that this page uses: you are signed out."}
      </Text>
    </Confirm>
  );
}
