const FIRST_CAPACITY = 64 * 1024;

export interface LineReader {
  /**
   * Adds bytes. Returns false if a line exceeds the limit. The reader must not be used after `push` has returned false.
   */
  push(chunk: Buffer): boolean;
}

/**
 * Splits untrusted bytes into lines of at most `maxBytes`. Copies each byte at most twice, and buffers at most twice
 * `maxBytes`.
 */
export function createLineReader(maxBytes: number, onLine: (line: string) => void): LineReader {
  let held: Buffer | null = null;
  let size = 0;

  function hold(piece: Buffer): void {
    if (!held || size + piece.length > held.length) {
      const grown = Buffer.allocUnsafe(Math.max(FIRST_CAPACITY, 2 * (size + piece.length)));
      held?.copy(grown, 0, 0, size);
      held = grown;
    }
    piece.copy(held, size);
    size += piece.length;
  }

  return {
    push(chunk) {
      let start = 0;
      for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
        if (size + end - start > maxBytes) return false;
        if (size === 0) {
          if (end > start) onLine(chunk.toString('utf8', start, end));
        } else {
          hold(chunk.subarray(start, end));
          const line = held!.toString('utf8', 0, size);
          held = null;
          size = 0;
          onLine(line);
        }
        start = end + 1;
      }
      if (size + chunk.length - start > maxBytes) return false;
      if (start < chunk.length) hold(chunk.subarray(start));
      return true;
    },
  };
}
