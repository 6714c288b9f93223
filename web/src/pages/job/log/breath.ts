/** Lets the page do what it has to do, in the middle of long work. */
export function breath(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
