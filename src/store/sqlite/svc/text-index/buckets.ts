import { Buffer } from 'node:buffer';

export const SEGMENT_DOCS = 2048;
const TEXT_BITS = 18;
const TEXT_BUCKETS = 1 << TEXT_BITS;
/** Number of buckets: TEXT_BUCKETS for trigrams of texts, the same number for field values, and OPEN_BUCKET. */
export const BUCKETS = 2 * TEXT_BUCKETS + 1;
/**
 * Bucket of deliveries that had not ended when they were indexed. The index does not contain the outcome of these
 * deliveries yet.
 */
export const OPEN_BUCKET = BUCKETS - 1;
const GRAM_BYTES = 3;
/** Multiplier of Fibonacci hashing, which distributes adjacent keys evenly (Knuth). */
const HASH_MULTIPLIER = 0x9e3779b1;

/** Calls `take` with the bucket of each sequence of three bytes. Different trigrams can map to the same bucket. */
export function eachTrigram(bytes: Uint8Array, take: (bucket: number) => void): void {
  let gram = ((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0);
  for (let at = GRAM_BYTES - 1; at < bytes.length; at++) {
    gram = ((gram << 8) | bytes[at]!) & 0xffffff;
    take(Math.imul(gram, HASH_MULTIPLIER) >>> (32 - TEXT_BITS));
  }
}

export function trigramsOf(text: string): number[] {
  const found = new Set<number>();
  eachTrigram(Buffer.from(text), (bucket) => void found.add(bucket));
  return [...found];
}

/** Returns the bucket of a field value, such as a namespace or status. */
export function factBucket(
  fact: 'namespace' | 'plugin' | 'event' | 'status' | 'trace',
  value: string,
): number {
  let sum = 0x811c9dc5;
  for (const byte of Buffer.from(`${fact} ${value}`)) sum = Math.imul(sum ^ byte, 0x01000193);
  return TEXT_BUCKETS + (Math.imul(sum, HASH_MULTIPLIER) >>> (32 - TEXT_BITS));
}

const BITMAP_BYTES = SEGMENT_DOCS / 8;

/** Encodes the deliveries of a bucket as a list of numbers, or as a bitmap if the bitmap is shorter. */
export function encodeDocs(docs: Uint32Array): Buffer {
  if (docs.length * 2 < BITMAP_BYTES) {
    const list = Buffer.allocUnsafe(docs.length * 2);
    for (const [place, doc] of docs.entries()) list.writeUInt16LE(doc, place * 2);
    return list;
  }
  const bitmap = Buffer.alloc(BITMAP_BYTES);
  for (const doc of docs) bitmap[doc >> 3]! |= 1 << (doc & 7);
  return bitmap;
}

/** Decodes a list of numbers or a bitmap. Returns a bitmap. */
export function decodeDocs(bytes: Buffer | undefined): Uint8Array {
  if (bytes?.length === BITMAP_BYTES) return bytes;
  const bitmap = new Uint8Array(BITMAP_BYTES);
  for (let at = 0; bytes && at < bytes.length; at += 2) {
    const doc = bytes.readUInt16LE(at);
    bitmap[doc >> 3]! |= 1 << (doc & 7);
  }
  return bitmap;
}
