import { crc32 } from 'node:zlib';
import type { WireRequest } from './wire-request.ts';

const POLYNOMIAL = 0xedb88320;
const TABLE = Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ POLYNOMIAL : value >>> 1;
  return value >>> 0;
});
/** Inverse of the table, by the highest byte of its values. */
const INVERSE = new Map(TABLE.map((value, byte) => [value >>> 24, ((value << 8) ^ byte) >>> 0]));

/** Characters that a JSON string can contain as they are. */
const PLAIN = /^[ !#-[\]-~]{4}$/;

/** Replaces the body by other JSON with the same CRC-32, as an attacker can who has seen a delivery. */
export function withSameChecksum(wire: WireRequest): WireRequest {
  const end = Buffer.from('"}');
  const wanted = before(end, ~crc32(wire.body) >>> 0);
  for (let n = 0; ; n++) {
    const start = Buffer.from(`{"forged":"${n}`);
    const patch = Buffer.alloc(4);
    patch.writeUInt32LE((before(Buffer.alloc(4), wanted) ^ ~crc32(start)) >>> 0);
    if (PLAIN.test(patch.toString('latin1'))) return { ...wire, body: Buffer.concat([start, patch, end]) };
  }
}

/** Returns the state of the checksum before the bytes, from the state after them. */
function before(bytes: Buffer, after: number): number {
  return bytes.reduceRight((state, byte) => ((state << 8) ^ INVERSE.get(state >>> 24)! ^ byte) >>> 0, after);
}
