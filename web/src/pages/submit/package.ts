/** Packs the code of a job as `crucible submit` does: a tar.gz of regular files with relative names. */

export interface CodeFile {
  name: string;
  text: string;
}

const BLOCK = 512;
const MOST_NAME = 100;
const MOST_PREFIX = 155;

/** Raises where a name cannot stand in a package. */
export function tar(files: CodeFile[]): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder();
  const pieces = files.flatMap(({ name, text }) => {
    const content = encoder.encode(text);
    return [header(name, content.length), content, new Uint8Array((BLOCK - (content.length % BLOCK)) % BLOCK)];
  });
  return joined([...pieces, new Uint8Array(2 * BLOCK)]);
}

function header(path: string, size: number): Uint8Array {
  const [prefix, name] = divided(path);
  const block = new Uint8Array(BLOCK);
  const put = (text: string, at: number) => block.set(new TextEncoder().encode(text), at);
  put(name, 0);
  put("0000644\0", 100);
  put("0000000\0", 108); // owner, group and time stay at zero: the same files are the same package
  put("0000000\0", 116);
  put(`${size.toString(8).padStart(11, "0")}\0`, 124);
  put("00000000000\0", 136);
  put("        ", 148);
  put("0", 156);
  put("ustar\x0000", 257);
  put(prefix, 345);
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

/** A long path is folder and name, each within its bounds. */
function divided(path: string): [prefix: string, name: string] {
  if (path === "" || path.startsWith("/") || path.split("/").includes(".."))
    throw new Error(`${path || "a file without a name"} cannot be shipped: names are relative to the code`);
  const length = (text: string) => new TextEncoder().encode(text).length;
  if (length(path) <= MOST_NAME) return ["", path];
  const cut = path.lastIndexOf("/");
  const [prefix, name] = [path.slice(0, Math.max(cut, 0)), path.slice(cut + 1)];
  if (length(name) > MOST_NAME || length(prefix) > MOST_PREFIX) throw new Error(`the name ${path} is too long`);
  return [prefix, name];
}

function joined(pieces: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

export interface Package {
  digest: string;
  content: Uint8Array<ArrayBuffer>;
}

export async function packed(files: CodeFile[]): Promise<Package> {
  if (crypto.subtle === undefined)
    throw new Error("this browser ships code only from a page that it got by https or from localhost");
  const zipped = new Response(tar(files)).body?.pipeThrough(new CompressionStream("gzip"));
  const content = new Uint8Array(await new Response(zipped).arrayBuffer());
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  return { digest: Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join(""), content };
}
