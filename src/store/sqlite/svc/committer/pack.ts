import type { PackedUnit, PackedValue, SqlValue, Unit } from './protocol.ts';

/** Units as JSON, and the byte values that they reference. */
export interface Packed {
  /** Units as JSON of PackedUnit[]. */
  units: string;
  parts: Uint8Array[];
  /** Total bytes of all byte values. */
  length: number;
}

export function pack(units: readonly Unit[]): Packed {
  const parts: Uint8Array[] = [];
  let length = 0;
  const place = (value: SqlValue): PackedValue => {
    if (!(value instanceof Uint8Array)) return value;
    parts.push(value);
    length += value.byteLength;
    return [length - value.byteLength, value.byteLength];
  };
  const packed = units.map(({ guarded, steps }): PackedUnit => {
    const unit: Array<string | readonly PackedValue[]> = [];
    for (const [statement, values] of steps) unit.push(statement, values.map(place));
    return [guarded ? 1 : 0, ...unit];
  });
  return { units: JSON.stringify(packed), parts, length };
}

/** Copies the byte values into `target`, one after another. */
export function layOut(parts: readonly Uint8Array[], target: Uint8Array, offset: number): void {
  let at = offset;
  for (const part of parts) {
    target.set(part, at);
    at += part.byteLength;
  }
}
