import { Alert, Button, Center, Divider, Group, Paper, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { useEffect, useRef, useState, type FormEvent } from "react";
import { Command } from "@/parts/Command";
import { ErrorNote } from "@/parts/ErrorNote";
import { basepath, server } from "@/place";
import { comeBack, elsewhere, withTicket, withToken } from "@/session/sign-in";
import { useSession } from "@/session/token";
import { useSignInWays } from "@/session/ways";
import { Label } from "@/shell/Label";

/** `next`: where the person was going; a path of this page. */
export default function SignInPage({ next, onDone }: { next: string; onDone: (next: string) => void }) {
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setIsBusy] = useState(false);
  const { isRefused } = useSession();
  useCarried(next, onDone, setError);

  const attempt = async (work: () => Promise<void>) => {
    setIsBusy(true);
    setError(null);
    try {
      await work();
    } catch (problem) {
      setError(problem);
    } finally {
      setIsBusy(false);
    }
  };
  return (
    <Center mih="100vh" p="md" component="main">
      <Paper withBorder p="lg" w="100%" maw={420}>
        <Stack gap="md">
          <Group gap="sm">
            <Title order={1}>Crucible</Title>
            <Label />
          </Group>
          {isRefused && (
            <Alert color="orange" variant="light" role="status">
              You were signed out: the token has expired or was revoked.
            </Alert>
          )}
          <TokenForm
            isBusy={isBusy}
            onToken={(value) => void attempt(() => withToken(value).then(() => onDone(next)))}
          />
          <Elsewhere
            isBusy={isBusy}
            onGo={(back) => void attempt(async () => leave(await elsewhere(server, back, next)))}
          />
          {error !== null && <ErrorNote error={error} />}
          <Text size="sm" className="dim">
            On the computer that the server runs on, this opens the page signed in:
          </Text>
          <Command line="crucible dashboard" />
        </Stack>
      </Paper>
    </Center>
  );
}

function leave(address: string) {
  location.assign(address);
}

function TokenForm({ isBusy, onToken }: { isBusy: boolean; onToken: (value: string) => void }) {
  const [value, setValue] = useState("");
  const send = (event: FormEvent) => {
    event.preventDefault();
    if (value.trim()) onToken(value.trim());
  };
  return (
    <form onSubmit={send}>
      <Stack gap="sm">
        <PasswordInput
          label="Token"
          description="One of yours: crucible token create"
          autoComplete="current-password"
          autoFocus
          value={value}
          onChange={(event) => setValue(event.currentTarget.value)}
        />
        <Button type="submit" loading={isBusy} disabled={!value.trim()}>
          Sign in
        </Button>
      </Stack>
    </form>
  );
}

function Elsewhere({ isBusy, onGo }: { isBusy: boolean; onGo: (returnTo: string) => void }) {
  const ways = useSignInWays();
  if (!ways.data?.ways.includes("oidc")) return null;
  const returnTo = `${location.origin}${basepath === "/" ? "" : basepath}/sign-in`;
  return (
    <>
      <Divider label="or" />
      <Button variant="default" loading={isBusy} onClick={() => onGo(returnTo)}>
        Sign in with {ways.data.oidc_name ?? "your organisation"}
      </Button>
    </>
  );
}

/** What the address carries: a code from elsewhere (?code=…&state=…) or a ticket (#code=…&verifier=…). It is taken out of
 * the address before it is used, so that it stays in no history. */
function useCarried(next: string, onDone: (next: string) => void, onError: (error: unknown) => void) {
  const isTaken = useRef(false);
  useEffect(() => {
    const query = new URLSearchParams(location.search);
    const ticket = new URLSearchParams(location.hash.slice(1));
    if (isTaken.current || !(query.has("state") || ticket.has("verifier"))) return;
    isTaken.current = true;
    history.replaceState(history.state, "", location.pathname);
    const arrived = query.has("state")
      ? comeBack(query)
      : withTicket(ticket.get("code") ?? "", ticket.get("verifier") ?? "").then(() => ticket.get("next") ?? next);
    arrived.then(onDone).catch(onError);
  });
}
