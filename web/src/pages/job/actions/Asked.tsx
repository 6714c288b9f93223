/** Asks, does it, and everything on the page is told anew. */
import { Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { freshKey } from "@/api/once";
import { Confirm } from "@/parts/Confirm";

interface Props {
  title: string;
  about: ReactNode;
  command: string;
  label: string;
  isSafe?: boolean;
  /** `once` is the same however often this question is answered. */
  run: (once: string) => Promise<unknown>;
  onDone?: (result: unknown) => void;
  onClose: () => void;
}

export function Asked({ title, about, command, label, isSafe = false, run, onDone, onClose }: Props) {
  const [once] = useState(freshKey);
  const queries = useQueryClient();
  const work = useMutation({
    mutationFn: () => run(once),
    onSuccess: (result) => {
      onDone?.(result);
      onClose();
    },
    onSettled: () => void queries.invalidateQueries(),
  });
  return (
    <Confirm
      isOpen
      title={title}
      action={label}
      command={command}
      isSafe={isSafe}
      isPending={work.isPending}
      error={work.error}
      onConfirm={() => work.mutate()}
      onClose={onClose}
    >
      <Text size="sm" component="div">
        {about}
      </Text>
    </Confirm>
  );
}
