/** A key for something that is to be done once, however often it is sent. Made without what browsers keep for pages that
 * came by https (`randomUUID`). */
export function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `web-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
