const NEWLINE = 0x0a;
/** Maximum line length. Longer lines are passed to `take` in parts, to limit memory. */
const MAX_LINE_BYTES = 1024 * 1024;

/** Splits a byte stream at newlines. `take` receives blocks of complete lines as raw bytes. */
export function lineBlocks(take: (block: Buffer) => void): { push(chunk: Buffer): void; end(): void } {
  let rest: Buffer = Buffer.alloc(0);
  return {
    push(chunk) {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      const whole = bytes.lastIndexOf(NEWLINE) + 1;
      const end = whole === 0 && bytes.length > MAX_LINE_BYTES ? bytes.length : whole;
      rest = bytes.subarray(end);
      if (end > 0) take(bytes.subarray(0, end));
    },
    end() {
      if (rest.length > 0) take(Buffer.concat([rest, Buffer.from('\n')]));
      rest = Buffer.alloc(0);
    },
  };
}
