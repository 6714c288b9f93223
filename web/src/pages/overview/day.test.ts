import { expect, it } from "vitest";
import { zoneOf } from "@/pages/overview/day";

const NOW = new Date("2026-11-18T05:25:31Z");

it("a day begins at midnight here", () => {
  const zone = zoneOf("Europe/Zurich", -60);
  expect(zone.tz).toBe("Europe/Zurich");
  expect(zone.midnight(NOW).getHours()).toBe(0);
});

it("where clocks stand between the hours, days are those of UTC", () => {
  const zone = zoneOf("Asia/Kolkata", -330);
  expect(zone.tz).toBe("UTC");
  expect(zone.midnight(NOW).toISOString()).toBe("2026-11-18T00:00:00.000Z");
});
