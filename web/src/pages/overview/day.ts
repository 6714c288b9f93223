/** In which zone days are counted: in this computer's own; in UTC where clocks stand between the hours, since the server
 * keeps costs by whole ones. */
export interface Zone {
  tz: string;
  /** When this day began there. */
  midnight: (now: Date) => Date;
}

/** `offset`: minutes, as `Date.getTimezoneOffset` says it. */
export function zoneOf(tz: string, offset: number): Zone {
  if (offset % 60 === 0) return { tz, midnight: (now) => new Date(new Date(now).setHours(0, 0, 0, 0)) };
  return { tz: "UTC", midnight: (now) => new Date(new Date(now).setUTCHours(0, 0, 0, 0)) };
}

export function zoneHere(): Zone {
  return zoneOf(Intl.DateTimeFormat().resolvedOptions().timeZone, new Date().getTimezoneOffset());
}
