/** The projects of a team. */
import { Button, Group, Table, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { api, told } from "@/api/client";
import { Confirm } from "@/parts/Confirm";
import { ErrorNote } from "@/parts/ErrorNote";
import { Loaded } from "@/parts/Loaded";
import { Panel } from "@/parts/Panel";
import { Rows } from "@/parts/Rows";
import { When } from "@/parts/When";
import { useMe } from "@/session/me";
import { manages } from "@/pages/settings/tabs";
import { useChange, useProjects } from "@/pages/settings/queries";

export function Projects({ team }: { team: string }) {
  const query = useProjects();
  const mayChange = manages(useMe().data, team);
  const [removing, setRemoving] = useState<string | null>(null);
  const columns = ["Project", "By", "Since", ...(mayChange ? [{ title: "Actions", isOnlyHeard: true }] : [])];
  return (
    <Panel title={`Projects of ${team}`}>
      <Loaded query={query}>
        {({ items }) => {
          const its = items.filter((project) => project.team === team);
          if (its.length === 0)
            return (
              <Text size="sm" className="dim">
                None yet.
              </Text>
            );
          return (
            <Rows label={`Projects of ${team}`} columns={columns} minWidth={460}>
              {its.map((project) => (
                <Table.Tr key={project.name}>
                  <Table.Td>{project.name}</Table.Td>
                  <Table.Td>{project.created_by}</Table.Td>
                  <Table.Td>
                    <When at={project.created_at} />
                  </Table.Td>
                  {mayChange && (
                    <Table.Td ta="right">
                      <Button
                        size="compact-xs"
                        color="red"
                        variant="light"
                        aria-label={`Remove the project ${project.name}`}
                        onClick={() => setRemoving(project.name)}
                      >
                        Remove
                      </Button>
                    </Table.Td>
                  )}
                </Table.Tr>
              ))}
            </Rows>
          );
        }}
      </Loaded>
      {mayChange && <NewProject team={team} />}
      <Removal project={removing} onClose={() => setRemoving(null)} />
    </Panel>
  );
}

function NewProject({ team }: { team: string }) {
  const [name, setName] = useState("");
  const create = useChange(
    () => told(api.POST("/v1/projects", { body: { name, team } })),
    [["projects"], ["teams"]],
    () => setName(""),
  );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate(undefined);
      }}
    >
      <Group align="flex-end" gap="xs">
        <TextInput
          label="New project"
          placeholder="name"
          size="xs"
          maxLength={64}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Button type="submit" size="xs" variant="default" loading={create.isPending} disabled={name === ""}>
          Make it
        </Button>
      </Group>
      {create.error && <ErrorNote error={create.error} />}
    </form>
  );
}

function Removal({ project, onClose }: { project: string | null; onClose: () => void }) {
  const remove = useChange(
    (name: string) => told(api.DELETE("/v1/projects/{project}", { params: { path: { project: name } } })),
    [["projects"], ["teams"]],
    onClose,
  );
  return (
    <Confirm
      title={`Remove the project ${project ?? ""}`}
      action="Remove"
      command={`crucible project rm ${project ?? ""}`}
      isOpen={project !== null}
      isPending={remove.isPending}
      error={remove.error}
      onClose={() => {
        remove.reset();
        onClose();
      }}
      onConfirm={() => project && remove.mutate(project)}
    >
      It stays in the books. Refused while jobs of it are not over.
    </Confirm>
  );
}
