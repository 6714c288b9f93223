/** A secret, or a new value for one: it goes to the server and is never seen again. */
import { NativeSelect, PasswordInput, TextInput } from "@mantine/core";
import { useState } from "react";
import { api, told } from "@/api/client";
import { Confirm } from "@/parts/Confirm";
import { useMe } from "@/session/me";
import { ownerOf, ownerOptions, ownerQuery } from "@/pages/settings/owners";
import { manages } from "@/pages/settings/tabs";
import { useChange, useProjects, useTeams } from "@/pages/settings/queries";

export function NewSecretDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const me = useMe().data;
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [choice, setChoice] = useState("");
  const { kind, owner } = ownerOf(choice);
  const teams = (useTeams().data?.items ?? []).filter((team) => manages(me, team.name));
  const projects = (useProjects().data?.items ?? []).filter((project) => manages(me, project.team));
  const forget = () => {
    setName("");
    setValue("");
    setChoice("");
    onClose();
  };
  const set = useChange(
    () =>
      told(
        api.PUT("/v1/secrets/{name}", { params: { path: { name }, query: ownerQuery(kind, owner) }, body: { value } }),
      ),
    [["secrets"]],
    forget,
  );
  return (
    <Confirm
      title="Set a secret"
      action="Set it"
      command={`crucible secret set ${name || "NAME"}${ownerOptions(kind, owner)}`}
      isOpen={isOpen}
      isSafe
      isBlocked={name === "" || value === ""}
      isPending={set.isPending}
      error={set.error}
      onClose={() => {
        set.reset();
        forget();
      }}
      onConfirm={() => set.mutate(undefined)}
    >
      <TextInput
        label="Name"
        description="as jobs name it, such as HF_TOKEN"
        required
        data-autofocus
        autoComplete="off"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <PasswordInput
        label="Value"
        required
        autoComplete="new-password"
        value={value}
        onChange={(event) => setValue(event.currentTarget.value)}
      />
      <NativeSelect
        label="Whose"
        data={[
          { value: "", label: "mine" },
          ...teams.map((team) => ({ value: `team ${team.name}`, label: `team ${team.name}` })),
          ...projects.map((project) => ({ value: `project ${project.name}`, label: `project ${project.name}` })),
        ]}
        value={choice}
        onChange={(event) => setChoice(event.currentTarget.value)}
      />
    </Confirm>
  );
}
