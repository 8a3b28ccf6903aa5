import type { Unit } from './protocol.ts';

const MAX_UNITS = 512;
const MAX_BYTES = 4 * 1024 * 1024;

/** Returns how many writes the next batch has. The last one can exceed the limit of bytes. */
export function cutUnits(queue: readonly { item: Unit }[]): number {
  let bytes = 0;
  let count = 0;
  while (count < queue.length && count < MAX_UNITS && bytes < MAX_BYTES)
    bytes += bytesOf(queue[count++]!.item);
  return count;
}

function bytesOf({ steps }: Unit): number {
  let bytes = 0;
  for (const [, values] of steps)
    for (const value of values) if (value instanceof Uint8Array) bytes += value.byteLength;
  return bytes;
}
