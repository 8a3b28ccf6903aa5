const NEWLINE = 0x0a;
/** A line without end must not grow without end. */
const LONGEST_LINE = 1024 * 1024;

/** Cuts a byte stream at line ends: `take` gets as many whole lines at once as arrived, without looking into them. */
export function lineBlocks(take: (block: Buffer) => void): { push(chunk: Buffer): void; end(): void } {
  let rest: Buffer = Buffer.alloc(0);
  return {
    push(chunk) {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      const whole = bytes.lastIndexOf(NEWLINE) + 1;
      const end = whole === 0 && bytes.length > LONGEST_LINE ? bytes.length : whole;
      rest = bytes.subarray(end);
      if (end > 0) take(bytes.subarray(0, end));
    },
    end() {
      if (rest.length > 0) take(Buffer.concat([rest, Buffer.from('\n')]));
      rest = Buffer.alloc(0);
    },
  };
}
