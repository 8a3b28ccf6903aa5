/** Where in the marker log a digest may stand. */
export interface MarkerIndex {
  add(digest: Uint8Array, id: number): void;
  /** Ids of rows whose digest begins with the same 64 bits, newest first; the row itself decides. */
  find(digest: Uint8Array): number[];
  readonly size: number;
}

const SMALLEST = 1024;
/** Longer probes cost more than the memory saved. */
const FULL_AT = 0.6;

/**
 * Open addressing over typed arrays: 16 bytes a slot, where a Map of texts takes above a hundred. Entries are never
 * deleted: rows go oldest first, so a rebuild leaves out all below `oldestId()`, and a stale hit finds no row.
 */
export function createMarkerIndex(oldestId: () => number): MarkerIndex {
  let capacity = SMALLEST;
  let table = allocate(capacity);
  let size = 0;

  function place(high: number, low: number, id: number): void {
    let slot = low & (capacity - 1);
    while (table.ids[slot] !== 0) slot = (slot + 1) & (capacity - 1);
    table.high[slot] = high;
    table.low[slot] = low;
    table.ids[slot] = id;
    size++;
  }

  function rebuild(): void {
    const former = table;
    const oldest = oldestId();
    let living = 0;
    for (const id of former.ids) if (id >= oldest && id !== 0) living++;
    capacity = SMALLEST;
    while (living + 1 > (capacity * FULL_AT) / 2) capacity *= 2;
    table = allocate(capacity);
    size = 0;
    for (let slot = 0; slot < former.ids.length; slot++) {
      const id = former.ids[slot]!;
      if (id !== 0 && id >= oldest) place(former.high[slot]!, former.low[slot]!, id);
    }
  }

  return {
    add(digest, id) {
      if (size + 1 > capacity * FULL_AT) rebuild();
      place(word(digest, 0), word(digest, 4), id);
    },
    find(digest) {
      const [high, low] = [word(digest, 0), word(digest, 4)];
      const found: number[] = [];
      for (let slot = low & (capacity - 1); table.ids[slot] !== 0; slot = (slot + 1) & (capacity - 1)) {
        if (table.low[slot] === low && table.high[slot] === high) found.push(table.ids[slot]!);
      }
      return found.length > 1 ? found.sort((a, b) => b - a) : found;
    },
    get size() {
      return size;
    },
  };
}

function allocate(capacity: number) {
  return {
    high: new Uint32Array(capacity),
    low: new Uint32Array(capacity),
    ids: new Float64Array(capacity),
  };
}

function word(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
}
