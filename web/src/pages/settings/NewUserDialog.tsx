/** A new person, or a program that comes with a token of its own. */
import { NativeSelect, TextInput } from "@mantine/core";
import { useState } from "react";
import { api, told, type Shape } from "@/api/client";
import { Confirm } from "@/parts/Confirm";
import { isAdmin, useMe } from "@/session/me";
import { useChange, useTeams } from "@/pages/settings/queries";

type NewUser = Required<Shape<"NewUser">>;

export function NewUserDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const mayAll = isAdmin(useMe().data);
  const first: NewUser = { name: "", role: "member", kind: mayAll ? "person" : "service", team: null };
  const [wanted, setWanted] = useState(first);
  const teams = useTeams().data?.items ?? [];
  const close = () => {
    setWanted(first);
    create.reset();
    onClose();
  };
  const create = useChange(
    (body: NewUser) => told(api.POST("/v1/users", { body })),
    [["users"], ["teams"], ["members"]],
    () => {
      setWanted(first);
      onClose();
    },
  );
  const set = (changes: Partial<NewUser>) => setWanted({ ...wanted, ...changes });
  const options = [
    wanted.role !== "member" && ` --role ${wanted.role}`,
    wanted.kind === "service" && " --service",
    wanted.team && ` --team ${wanted.team}`,
  ];
  return (
    <Confirm
      title={mayAll ? "New user" : "New service"}
      action="Make it"
      command={`crucible user create ${wanted.name || "NAME"}${options.filter(Boolean).join("")}`}
      isOpen={isOpen}
      isSafe
      isBlocked={wanted.name === ""}
      isPending={create.isPending}
      error={create.error}
      onClose={close}
      onConfirm={() => create.mutate(wanted)}
    >
      <TextInput
        label="Name"
        required
        data-autofocus
        maxLength={64}
        value={wanted.name}
        onChange={(event) => set({ name: event.currentTarget.value })}
      />
      {mayAll && (
        <NativeSelect
          label="Kind"
          data={["person", "service"]}
          value={wanted.kind}
          onChange={(event) => set({ kind: event.currentTarget.value as NewUser["kind"] })}
        />
      )}
      <NativeSelect
        label="Role on the server"
        data={mayAll ? ["viewer", "member", "admin"] : ["viewer", "member"]}
        value={wanted.role}
        onChange={(event) => set({ role: event.currentTarget.value as NewUser["role"] })}
      />
      <NativeSelect
        label="Team from the start"
        data={[{ value: "", label: "none" }, ...teams.map((team) => team.name)]}
        value={wanted.team ?? ""}
        onChange={(event) => set({ team: event.currentTarget.value || null })}
      />
    </Confirm>
  );
}
