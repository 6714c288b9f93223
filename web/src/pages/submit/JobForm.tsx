/** The common fields of a job file. What they are called, mean and take is the schema's to say; the text is the truth. */
import {
  Alert,
  Fieldset,
  NumberInput,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  TagsInput,
  Textarea,
  TextInput,
} from "@mantine/core";
import { fieldOf, GROUPS, parsed, typed, withField, type Path, type Value } from "@/pages/submit/form";
import type { Problem } from "@/pages/submit/queries";
import { choices, schemaAt, takes, type Schema } from "@/pages/submit/schema";

interface Props {
  text: string;
  schema: Schema;
  problems: Problem[];
  onChange: (text: string) => void;
}

export function JobForm({ text, schema, problems, onChange }: Props) {
  const document = parsed(text);
  if (document === null)
    return (
      <Alert color="orange" variant="light" title="The text cannot be read">
        The form shows what the YAML says, and that is not finished. Mend it in the editor first.
      </Alert>
    );
  return (
    <Stack gap="md">
      {GROUPS.map(({ title, fields }) => (
        <Fieldset key={title} legend={title}>
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm" verticalSpacing="xs">
            {fields.map((path) => {
              const one = schemaAt(schema, [...path]);
              const name = path.slice(1).join(".");
              const wrong = problems.find(({ field, isWarning }) => !isWarning && field === path.join("."));
              return one ? (
                <Field
                  key={name}
                  name={name}
                  schema={one}
                  value={fieldOf(document, path)}
                  error={wrong && said(wrong)}
                  onChange={(value) => onChange(withField(text, path as Path, value))}
                />
              ) : null;
            })}
          </SimpleGrid>
        </Fieldset>
      ))}
    </Stack>
  );
}

function said({ message, hint }: Problem): string {
  return hint ? `${message} (${hint})` : message;
}

interface FieldProps {
  name: string;
  schema: Schema;
  value: Value;
  error: string | undefined;
  onChange: (value: Value) => void;
}

const LINES = ["command", "setup"];

function Field({ name, schema, value, error, onChange }: FieldProps) {
  const shared = { label: labelOf(name), description: schema.description, error, inputWrapperOrder: ORDER };
  const text = value === undefined ? "" : String(value);
  if (choices(schema).length > 0 && !takes(schema, "boolean"))
    return (
      <Select
        {...shared}
        data={choices(schema).map(String)}
        value={text || null}
        clearable
        placeholder={fallback(schema)}
        onChange={(chosen) => onChange(chosen ?? undefined)}
      />
    );
  if (takes(schema, "boolean") && !takes(schema, "string"))
    return (
      <Switch
        label={shared.label}
        description={schema.description}
        error={error}
        checked={value === true}
        onChange={(event) => onChange(event.currentTarget.checked ? true : undefined)}
      />
    );
  if (takes(schema, "array") && !LINES.includes(name))
    return (
      <TagsInput
        {...shared}
        value={Array.isArray(value) ? value : text ? [text] : []}
        placeholder="type, then Enter"
        onChange={(list) => onChange(takes(schema, "string") && list.length === 1 ? list[0] : list)}
      />
    );
  if ((takes(schema, "integer") || takes(schema, "number")) && !takes(schema, "string"))
    return (
      <NumberInput
        {...shared}
        value={typeof value === "number" ? value : text}
        placeholder={fallback(schema)}
        allowDecimal={!takes(schema, "integer")}
        min={schema.minimum}
        max={schema.maximum}
        clampBehavior="none"
        onChange={(number) => onChange(number)}
      />
    );
  const Line = LINES.includes(name) ? Textarea : TextInput;
  return (
    <Line
      {...shared}
      {...(Line === Textarea && { autosize: true })}
      value={Array.isArray(value) ? value.join(" ") : text}
      placeholder={fallback(schema)}
      readOnly={Array.isArray(value)}
      onChange={(event: { currentTarget: { value: string } }) => onChange(typed(event.currentTarget.value))}
    />
  );
}

const ORDER: ("label" | "input" | "description" | "error")[] = ["label", "input", "error", "description"];

const UNSAID = ["resources", "constraints"]; // the group says it
const SPELT: Record<string, string> = { gpu: "GPU", gpus: "GPUs", cpu: "CPU", cpus: "CPUs" };

/** `resources.gpu_type` is "GPU type", `retry.limit` is "Retry limit". */
function labelOf(name: string): string {
  const words = name.split(/[._]/).filter((word) => !UNSAID.includes(word));
  const label = words.map((word) => SPELT[word] ?? word).join(" ");
  return label.charAt(0).toUpperCase() + label.slice(1);
}

function fallback(schema: Schema): string {
  const example = schema.examples?.[0];
  if (schema.default !== undefined) return String(schema.default);
  return example === undefined || typeof example === "object" ? "" : `such as ${String(example)}`;
}
