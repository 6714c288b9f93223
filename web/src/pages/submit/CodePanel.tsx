/** The program itself: pasted or dropped here it is read for what it needs, and shipped with the job. It is never run by
 * the server, and not kept unless it is submitted. */
import { Alert, Button, CloseButton, FileButton, Group, Select, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useState, type DragEvent } from "react";
import { missingStart } from "@/pages/submit/apply";
import type { Code } from "@/pages/submit/draft";
import { withFiles } from "@/pages/submit/files";
import type { CodeFile } from "@/pages/submit/package";
import { bytes, plural } from "@/parts/words";

interface Props {
  text: string;
  code: Code;
  onChange: (code: Code) => void;
}

export function CodePanel({ text, code, onChange }: Props) {
  const [shown, setShown] = useState(0);
  const [error, setError] = useState<string | null>(null);
  const [isOver, setIsOver] = useState(false);
  const files = code.kind === "files" ? code.files : [];
  const file = files[Math.min(shown, files.length - 1)] ?? { name: "train.py", text: "" };
  const set = (next: CodeFile[]) => onChange(next.length > 0 ? { kind: "files", files: next } : { kind: "none" });
  const replace = (changed: CodeFile) => {
    const isGone = changed.text === "" && files.length <= 1;
    set(isGone ? [] : files.length === 0 ? [changed] : files.map((one) => (one === file ? changed : one)));
  };
  const add = async (chosen: File[]) => {
    try {
      set(await withFiles(files, chosen));
      setError(null);
    } catch (problem) {
      setError((problem as Error).message);
    }
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setIsOver(false);
    void add([...event.dataTransfer.files]);
  };
  const missing = files.length > 0 ? missingStart(text, files) : null;
  return (
    <Stack
      gap="xs"
      onDrop={drop}
      onDragOver={(event) => {
        event.preventDefault();
        setIsOver(true);
      }}
      onDragLeave={() => setIsOver(false)}
      style={{ outline: isOver ? "2px dashed var(--mantine-primary-color-filled)" : undefined, outlineOffset: 6 }}
    >
      <Text size="sm" className="dim">
        Paste a script or drop files: they are read, never run, for what they need, and shipped with the job.
      </Text>
      {code.kind === "job" && (
        <Alert color="blue" variant="light" p="xs">
          Runs the code of job {code.job}. Files that you put here go before it.
        </Alert>
      )}
      <Group gap="xs" align="flex-end">
        {files.length > 1 && (
          <Select
            label="File"
            data={files.map(({ name }) => name)}
            value={file.name}
            onChange={(name) => setShown(files.findIndex((one) => one.name === name))}
            allowDeselect={false}
          />
        )}
        <TextInput
          label="Its name"
          value={file.name}
          onChange={(event) => replace({ ...file, name: event.currentTarget.value })}
          disabled={files.length === 0}
        />
        <FileButton multiple onChange={(chosen) => void add(chosen)}>
          {(button) => (
            <Button variant="default" {...button}>
              Choose files
            </Button>
          )}
        </FileButton>
        {files.length > 0 && (
          <CloseButton
            size="lg"
            aria-label={`remove ${file.name}`}
            onClick={() => {
              setShown(0);
              set(files.filter((one) => one !== file));
            }}
          />
        )}
      </Group>
      <Textarea
        aria-label="code"
        placeholder="import torch …"
        rows={16}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 } }}
        spellCheck={false}
        value={file.text}
        onChange={(event) => replace({ ...file, text: event.currentTarget.value })}
      />
      {error && (
        <Alert color="red" variant="light" p="xs" role="alert">
          {error}
        </Alert>
      )}
      {missing && (
        <Alert color="yellow" variant="light" p="xs">
          {missing}
        </Alert>
      )}
      {files.length > 0 && (
        <Text size="xs" className="dim">
          {plural(files.length, "file")}, {bytes(files.reduce((sum, one) => sum + one.text.length, 0))}: shipped with
          the job
        </Text>
      )}
    </Stack>
  );
}
