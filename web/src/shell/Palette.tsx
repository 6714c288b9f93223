/** Go anywhere by a few letters: pages, and jobs by name. */
import { Combobox, Modal, Text, TextInput, useCombobox } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, told } from "@/api/client";
import { useMe } from "@/session/me";
import { destinationsFor } from "@/shell/nav";

const JOBS = 200;
const SHOWN = 12;

export default function Palette({ onClose }: { onClose: () => void }) {
  const [words, setWords] = useState("");
  const found = useFound(words);
  const navigate = useNavigate();
  const combobox = useCombobox({ opened: true });
  const go = (to: string) => {
    onClose();
    void navigate({ to });
  };
  return (
    <Modal
      opened
      onClose={onClose}
      withCloseButton={false}
      padding={0}
      yOffset="12vh"
      attributes={{ content: { "aria-label": "go to" } }}
    >
      <Combobox store={combobox} onOptionSubmit={go}>
        <Combobox.EventsTarget withExpandedAttribute>
          <TextInput
            data-autofocus
            role="combobox"
            size="md"
            variant="filled"
            placeholder="A page, or the name of a job"
            aria-label="a page, or the name of a job"
            value={words}
            onChange={(event) => {
              setWords(event.currentTarget.value);
              combobox.selectFirstOption();
            }}
          />
        </Combobox.EventsTarget>
        <Combobox.Options p="xs" mah={360} style={{ overflowY: "auto" }} tabIndex={0} aria-label="pages and jobs">
          {found.map((one) => (
            <Combobox.Option key={one.to} value={one.to}>
              <Text size="sm">{one.title}</Text>
              <Text size="xs" className="dim">
                {one.about}
              </Text>
            </Combobox.Option>
          ))}
          {found.length === 0 && <Combobox.Empty>nothing goes by that name</Combobox.Empty>}
        </Combobox.Options>
      </Combobox>
    </Modal>
  );
}

function useFound(words: string) {
  const me = useMe();
  const [typed] = useDebouncedValue(words.trim(), 150);
  const settled = typed.toLowerCase();
  const jobs = useQuery({
    queryKey: ["jobs", "palette"],
    queryFn: () => told(api.GET("/v1/jobs", { params: { query: { limit: JOBS } } })),
    placeholderData: keepPreviousData,
  });
  // Older ones by their whole name: the newest are there at once, and found by any part of it.
  const named = useQuery({
    queryKey: ["jobs", "named", typed],
    queryFn: () => told(api.GET("/v1/jobs", { params: { query: { name: typed, limit: SHOWN } } })),
    enabled: typed !== "",
    placeholderData: keepPreviousData,
  });
  const pages = destinationsFor(me.data).map(({ to, title, about }) => ({ to, title, about }));
  const newest = jobs.data?.items ?? [];
  const older = (named.data?.items ?? []).filter((one) => !newest.some((each) => each.id === one.id));
  const work = [...newest, ...older].map((job) => ({
    to: `/jobs/${job.id}`,
    title: job.name,
    about: `job · ${job.status} · ${job.id}`,
  }));
  return [...pages, ...work]
    .filter((one) => `${one.title} ${one.about}`.toLowerCase().includes(settled))
    .slice(0, SHOWN);
}
