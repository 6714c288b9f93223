/** The report as a file: the API's own CSV and JSON, with all digits. */
import { Button, Menu } from "@mantine/core";
import { useState } from "react";
import { asApiError } from "@/api/errors";
import type { Asked } from "@/pages/costs/asked";
import { save } from "@/pages/costs/save";
import { fileOf } from "@/pages/costs/queries";
import { DownloadIcon } from "@/parts/icons";
import { say } from "@/parts/say";

export function Downloads({ asked }: { asked: Asked }) {
  const [isBusy, setIsBusy] = useState(false);
  const choices = [asked.by, `${asked.step},${asked.by}`];
  const fetchFile = async (by: string, format: "csv" | "json") => {
    setIsBusy(true);
    try {
      save(await fileOf(asked, by, format), `costs-by-${by.replace(",", "-")}.${format}`);
    } catch (error) {
      say({ color: "red", title: "No file", message: asApiError(error).message });
    } finally {
      setIsBusy(false);
    }
  };
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" size="xs" leftSection={<DownloadIcon />} loading={isBusy}>
          Download
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {(["csv", "json"] as const).flatMap((format) =>
          choices.map((by) => (
            <Menu.Item key={format + by} onClick={() => void fetchFile(by, format)}>
              {format.toUpperCase()}, by {by.replace("_", " ").replace(",", " and ")}
            </Menu.Item>
          )),
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
