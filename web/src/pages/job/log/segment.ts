/** Lines of a log, in the order they came, kept so that a million of them is little: their text joined by the thousand,
 * their numbers in typed arrays. Only ever grows at its end. */
import type { LogLine } from "@/api/job-stream";
import { plain } from "@/pages/job/log/ansi";

export const CHUNK_LINES = 1024;
/** Pieces of one line are put together up to here; a longer one goes on in the next row. */
const LONGEST_LINE = 100_000;

export interface Line {
  attempt: number;
  rank: number;
  /** Milliseconds since 1970. */
  at: number;
  isError: boolean;
  text: string;
}

interface Chunk {
  /** While it grows. */
  lines: string[] | null;
  /** When it is full: everything, and where each line ends. */
  text: string;
  ends: Uint32Array;
  hasEscapes: boolean;
}

export class Segment {
  length = 0;
  private chunks: Chunk[] = [];
  private ats = new Float64Array(CHUNK_LINES);
  private attempts = new Uint16Array(CHUNK_LINES);
  private ranks = new Uint32Array(CHUNK_LINES);
  private widths = new Uint32Array(CHUNK_LINES);
  private errors = new Uint8Array(CHUNK_LINES);
  /** Whose line is not finished yet: the last one may still grow. */
  private open: { attempt: number; rank: number } | null = null;

  append(line: LogLine): void {
    if (this.goesOn(line)) {
      const lines = this.chunks.at(-1)?.lines;
      if (lines) this.put(this.length - 1, lines, lines.pop() + line.x);
    } else this.begin(line);
    this.open = line.p ? { attempt: line.attempt, rank: line.rank } : null;
  }

  /** Raises RangeError for a line that is not there. */
  line(at: number): Line {
    return {
      attempt: this.attempts[at] ?? 0,
      rank: this.ranks[at] ?? 0,
      at: this.ats[at] ?? 0,
      isError: this.errors[at] === 1,
      text: this.text(at),
    };
  }

  text(at: number): string {
    const chunk = this.chunks[Math.floor(at / CHUNK_LINES)];
    if (chunk === undefined || at >= this.length) throw new RangeError(`there is no line ${at}`);
    const index = at % CHUNK_LINES;
    if (chunk.lines) return chunk.lines[index] ?? "";
    return chunk.text.slice(index === 0 ? 0 : (chunk.ends[index - 1] ?? 0) + 1, chunk.ends[index]);
  }

  /** How many characters of it are shown. */
  width(at: number): number {
    return this.widths[at] ?? 0;
  }

  rank(at: number): number {
    return this.ranks[at] ?? 0;
  }

  attempt(at: number): number {
    return this.attempts[at] ?? 0;
  }

  isError(at: number): boolean {
    return this.errors[at] === 1;
  }

  /** What is looked through: without colours. */
  shown(at: number): string {
    const text = this.text(at);
    return this.chunks[Math.floor(at / CHUNK_LINES)]?.hasEscapes ? plain(text) : text;
  }

  private goesOn(line: LogLine): boolean {
    if (this.open?.attempt !== line.attempt || this.open.rank !== line.rank) return false;
    return this.length % CHUNK_LINES !== 0 && this.text(this.length - 1).length + line.x.length <= LONGEST_LINE;
  }

  private begin(line: LogLine): void {
    const at = this.length;
    if (at % CHUNK_LINES === 0) this.addChunk();
    this.ats[at] = line.t;
    this.attempts[at] = line.attempt;
    this.ranks[at] = line.rank;
    this.errors[at] = line.s === "err" ? 1 : 0;
    const lines = this.chunks.at(-1)?.lines;
    if (lines) this.put(at, lines, line.x);
    this.length += 1;
  }

  private put(at: number, lines: string[], text: string): void {
    const chunk = this.chunks.at(-1);
    lines.push(text);
    const isPlain = !/[\x00-\x1f\x7f-\x9f]/.test(text);
    if (chunk && !isPlain) chunk.hasEscapes = true;
    this.widths[at] = isPlain ? text.length : plain(text).length;
  }

  private addChunk(): void {
    const full = this.chunks.at(-1);
    if (full?.lines) {
      let end = -1;
      full.ends = Uint32Array.from(full.lines, (line) => (end += line.length + 1));
      full.text = full.lines.join("\n");
      full.lines = null;
    }
    this.chunks.push({ lines: [], text: "", ends: new Uint32Array(), hasEscapes: false });
    if (this.length + CHUNK_LINES > this.ats.length) this.grow();
  }

  private grow(): void {
    const size = this.ats.length * 2;
    this.ats = grown(this.ats, new Float64Array(size));
    this.attempts = grown(this.attempts, new Uint16Array(size));
    this.ranks = grown(this.ranks, new Uint32Array(size));
    this.widths = grown(this.widths, new Uint32Array(size));
    this.errors = grown(this.errors, new Uint8Array(size));
  }
}

function grown<Numbers extends { set: (from: Numbers) => void }>(old: Numbers, larger: Numbers): Numbers {
  larger.set(old);
  return larger;
}
