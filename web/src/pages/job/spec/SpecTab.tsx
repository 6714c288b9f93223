import { Alert, Button, CopyButton, Group, SegmentedControl, Stack } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Command } from "@/parts/Command";
import { DownloadIcon } from "@/parts/icons";
import { Loaded } from "@/parts/Loaded";
import { useAddress } from "@/parts/address";
import type { TabProps } from "@/pages/job/JobTabs";
import { useLaunchScript, useSpec } from "@/pages/job/queries";
import { save } from "@/pages/job/save";
import classes from "@/pages/job/spec/Spec.module.css";

/** The text that was submitted, to the letter; and the script that starts it, to run it by hand. */
export default function SpecTab({ job, task }: TabProps) {
  const [params, setParams] = useAddress();
  const isScript = params["show"] === "script";
  const spec = useSpec(job.id);
  const script = useLaunchScript(job.id, task, isScript);
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <SegmentedControl
          size="xs"
          aria-label="what is shown"
          value={isScript ? "script" : "spec"}
          onChange={(show) => setParams({ show: show === "spec" ? undefined : show })}
          data={[
            { value: "spec", label: "as submitted" },
            { value: "script", label: "launch script" },
          ]}
        />
        <Button size="xs" variant="default" component={Link} to="/submit" search={{ from: job.id } as never}>
          Clone to Submit
        </Button>
      </Group>
      {isScript ? (
        <Loaded query={script}>
          {(found) => (
            <>
              {!found.is_placed && (
                <Alert color="blue" variant="light" py="xs">
                  No machine is chosen yet: names like node-0 stand for them.
                </Alert>
              )}
              <Text text={found.script} name={`${job.id}.sh`} label="launch script" />
              <Command line={`crucible launch-script ${job.id} > start.sh`} />
            </>
          )}
        </Loaded>
      ) : (
        <Loaded query={spec}>
          {(found) => <Text text={found.spec_yaml} name={`${job.name}.yaml`} label="job file" />}
        </Loaded>
      )}
    </Stack>
  );
}

function Text({ text, name, label }: { text: string; name: string; label: string }) {
  return (
    <Stack gap="xs">
      <Group gap="xs">
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <Button size="xs" variant="default" onClick={copy}>
              {copied ? "Copied" : "Copy"}
            </Button>
          )}
        </CopyButton>
        <Button size="xs" variant="default" leftSection={<DownloadIcon size={14} />} onClick={() => save(text, name)}>
          Download
        </Button>
      </Group>
      <pre className={classes["text"]} tabIndex={0} aria-label={label}>
        {text}
      </pre>
    </Stack>
  );
}
