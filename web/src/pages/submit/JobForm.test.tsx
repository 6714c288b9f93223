import { MantineProvider } from "@mantine/core";
import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, test } from "vitest";
import { JobForm } from "@/pages/submit/JobForm";
import type { Problem } from "@/pages/submit/queries";
import type { Schema } from "@/pages/submit/schema";

const SCHEMA: Schema = {
  properties: {
    job: {
      type: "object",
      properties: {
        name: { type: "string", description: "shown in lists" },
        resources: { type: "object", properties: { gpus: { type: "integer", minimum: 0 } } },
        constraints: {
          type: "object",
          properties: { budget: { type: ["number", "string"] }, allow_spot: { type: "boolean" } },
        },
        retry: { type: "object", properties: { limit: { type: "integer" } } },
      },
    },
  },
};

function Sample({ text, problems = [] }: { text: string; problems?: Problem[] }) {
  const [written, setWritten] = useState(text);
  return (
    <MantineProvider env="test">
      <JobForm text={written} schema={SCHEMA} problems={problems} onChange={setWritten} />
      <pre data-testid="text">{written}</pre>
    </MantineProvider>
  );
}
const written = () => screen.getByTestId("text").textContent;

test("what is typed into the form stands in the text, beside its comments", async () => {
  render(<Sample text={"# mine\njob:\n  name: a # short\n"} />);
  await userEvent.type(screen.getByRole("textbox", { name: "Name" }), "bc");
  await userEvent.type(screen.getByRole("textbox", { name: "GPUs" }), "8");
  await userEvent.type(screen.getByRole("textbox", { name: "Budget" }), "1.05");
  await userEvent.click(screen.getByRole("switch", { name: "Allow spot" }));
  expect(written()).toBe(
    "# mine\njob:\n  name: abc # short\n  resources:\n    gpus: 8\n  constraints:\n    budget: 1.05\n    allow_spot: true\n",
  );
});

test("a problem stands at its field", () => {
  const problem = {
    line: 3,
    column: 5,
    field: "job.resources.gpus",
    message: "expected a number",
    hint: "",
    isWarning: false,
  };
  render(<Sample text={"job:\n  resources:\n    gpus: many\n"} problems={[problem]} />);
  expect(screen.getByText("expected a number")).toBeTruthy();
  expect(screen.getByText("Retry limit")).toBeTruthy();
});

test("text that cannot be read is not touched", () => {
  render(<Sample text="job: [" />);
  expect(screen.getByText("The text cannot be read")).toBeTruthy();
  expect(written()).toBe("job: [");
});
