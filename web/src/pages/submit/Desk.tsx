/** The draft on the left, what would come of it on the right, and below everything else that could run it. */
import { Button, Grid, Group, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { freshKey } from "@/api/once";
import { entrypointOf, preferencesOf, withBackend, withSuggested } from "@/pages/submit/apply";
import { Choice } from "@/pages/submit/Choice";
import { Confirm } from "@/pages/submit/Confirm";
import { confirmedAs, isTouched, store, type Draft } from "@/pages/submit/draft";
import { Editing, TABS } from "@/pages/submit/Editing";
import { PlanPanel } from "@/pages/submit/PlanPanel";
import { useChecked, usePlanned, useRecommendations } from "@/pages/submit/queries";
import { Recommendations } from "@/pages/submit/Recommendations";
import { StartMenu } from "@/pages/submit/StartMenu";
import classes from "@/pages/submit/submit.module.css";
import { submitted } from "@/pages/submit/submission";
import { DownloadIcon } from "@/parts/icons";
import { Command } from "@/parts/Command";
import { Waiting } from "@/parts/Loaded";
import { Page } from "@/parts/Page";
import { Panel } from "@/parts/Panel";
import { mayChange, type Me } from "@/session/me";

const PAUSE_MS = 350; // of typing, before the server is asked

interface Props {
  me: Me;
  draft: Draft;
  about: string;
  onChange: (draft: Draft) => void;
}

export function Desk({ me, draft, about, onChange }: Props) {
  const search = useSearch({ strict: false });
  const navigate = useNavigate();
  const [isAsked, setIsAsked] = useState(false);
  const [text] = useDebouncedValue(draft.text, PAUSE_MS);
  const checked = useChecked(draft.text, text);
  const planned = usePlanned(draft.text, text);
  const set = (changes: Partial<Draft>) => onChange({ ...draft, ...changes });
  const send = async () => {
    const confirmed = confirmedAs(draft, freshKey());
    onChange(confirmed); // the key is kept before it is used
    const id = await submitted(confirmed);
    store(me.user_id, null);
    await navigate({ to: "/jobs/$jobId", params: { jobId: id } });
  };
  const tab = TABS.find((one) => one === search["tab"]) ?? "yaml";
  return (
    <Page
      title="Submit"
      about={about}
      actions={
        <>
          <Button
            variant="default"
            leftSection={<DownloadIcon />}
            aria-label="download job.yaml"
            onClick={() => download(draft.text)}
          >
            job.yaml
          </Button>
          <StartMenu draft={draft} onBegin={onChange} />
        </>
      }
    >
      <Grid gap="md">
        <Grid.Col span={{ base: 12, md: 7 }}>
          <Editing
            draft={draft}
            problems={checked.problems}
            tab={tab}
            onTab={(next) => void navigate({ to: "/submit", search: { ...search, tab: next }, replace: true })}
            onChange={set}
          />
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 5 }}>
          <div className={classes.beside}>
            <Panel title="What would be bought">
              {planned.plan ? (
                <Choice plan={planned.plan} isOld={planned.isOld} />
              ) : (
                <NoPlan isAsking={planned.isAsking} />
              )}
              <Group gap="sm">
                <SubmitButton me={me} isValid={checked.isValid} onClick={() => setIsAsked(true)} />
                <Command line="crucible submit ./job.yaml" />
              </Group>
            </Panel>
          </div>
        </Grid.Col>
      </Grid>
      <Stack gap="md">
        <PlanPanel planned={planned} />
        {draft.code.kind === "files" && <ForCode draft={draft} settled={text} onText={(next) => set({ text: next })} />}
      </Stack>
      {isAsked && <Confirm draft={draft} onSubmit={send} onClose={() => setIsAsked(false)} />}
    </Page>
  );
}

/** The text as a file, for the command line. */
function download(text: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/yaml" }));
  link.download = "job.yaml";
  link.click();
  URL.revokeObjectURL(link.href);
}

function NoPlan({ isAsking }: { isAsking: boolean }) {
  if (isAsking) return <Waiting lines={3} />;
  return (
    <Text size="sm" className="dim">
      No plan yet.
    </Text>
  );
}

function SubmitButton({ me, isValid, onClick }: { me: Me; isValid: boolean; onClick: () => void }) {
  if (!mayChange(me)) return <Text size="sm">You may look, but not submit; an admin can make you a member.</Text>;
  return (
    <Button onClick={onClick} disabled={!isValid}>
      Submit job
    </Button>
  );
}

/** What the code needs, asked as it is typed. */
function ForCode({ draft, settled, onText }: { draft: Draft; settled: string; onText: (text: string) => void }) {
  const [code] = useDebouncedValue(draft.code, PAUSE_MS * 2);
  const files = code.kind === "files" ? code.files.filter(({ name }) => name !== "") : [];
  const start = entrypointOf(settled);
  const known = files.some(({ name }) => name === start) ? start : undefined;
  const query = useRecommendations(files, known, preferencesOf(settled));
  return (
    <Recommendations
      query={query}
      onApply={(spec) =>
        onText(isTouched({ ...draft, code: { kind: "none" } }) ? withSuggested(draft.text, spec) : spec)
      }
      onBackend={(offer) => onText(withBackend(draft.text, offer))}
    />
  );
}
