import type { PackedUnit, PackedValue, SqlValue, Unit } from './protocol.ts';

/** Batch of writes, as sent to the thread or appended to the journal. */
export interface Packed {
  /** JSON of an array of PackedUnit. */
  units: string;
  parts: Uint8Array[];
  /** Total size of `parts` in bytes. */
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

/** Copies the parts into `target` one after another, starting at `offset`. */
export function layOut(parts: readonly Uint8Array[], target: Uint8Array, offset: number): void {
  let at = offset;
  for (const part of parts) {
    target.set(part, at);
    at += part.byteLength;
  }
}
