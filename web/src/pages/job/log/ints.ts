/** A list of whole numbers that grows without moving what is there more often than it must. */
export class Ints {
  length = 0;
  private held = new Int32Array(256);

  push(value: number): void {
    if (this.length === this.held.length) {
      const larger = new Int32Array(this.length * 2);
      larger.set(this.held);
      this.held = larger;
    }
    this.held[this.length] = value;
    this.length += 1;
  }

  at(index: number): number {
    return this.held[index] ?? 0;
  }

  /** Of numbers that only rise: the place of the first one above `value`. */
  above(value: number): number {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.at(middle) > value) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** The last number may still change. */
  pop(): void {
    this.length = Math.max(0, this.length - 1);
  }
}
