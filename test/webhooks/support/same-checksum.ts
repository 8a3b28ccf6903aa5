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

/** Replaces the body by another one with the same CRC-32, as anybody can who has seen a delivery. */
export function withSameChecksum(wire: WireRequest): WireRequest {
  const forged = Buffer.from('{"forged":true}');
  let state = ~crc32(wire.body) >>> 0;
  for (let i = 0; i < 4; i++) state = ((state << 8) ^ INVERSE.get(state >>> 24)!) >>> 0;
  const patch = Buffer.alloc(4);
  patch.writeUInt32LE((state ^ ~crc32(forged)) >>> 0);
  return { ...wire, body: Buffer.concat([forged, patch]) };
}
