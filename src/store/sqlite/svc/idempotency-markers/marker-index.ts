/** In-memory index from marker digests to row ids. */
export interface MarkerIndex {
  add(digest: Uint8Array, id: number): void;
  /**
   * Returns the rows whose digest starts with the same 64 bits, newest first. The caller must compare whole digests.
   */
  find(digest: Uint8Array): number[];
  readonly size: number;
}

const MIN_SLOTS = 1024;
/** Maximum number of slots per table. Growing a larger table would block the event loop for too long. */
const MAX_SLOTS = 131_072;
/** Maximum load factor of a table. A higher load factor saves little memory but makes lookups slower. */
const FULL_AT = 0.6;

/**
 * Hash tables with open addressing. A slot needs 16 bytes, while a Map entry needs over 100 bytes. A table is dropped
 * when all of its ids are below `oldestId()`.
 */
export function createMarkerIndex(oldestId: () => number): MarkerIndex {
  let tables = [createTable(MIN_SLOTS)];

  function writableTable(): Table {
    const last = tables.at(-1)!;
    if (last.size + 1 <= last.slots * FULL_AT) return last;
    if (last.slots < MAX_SLOTS) tables[tables.length - 1] = enlarged(last);
    else {
      const oldest = oldestId();
      tables = tables.filter(({ newestId }) => newestId >= oldest);
      tables.push(createTable(MAX_SLOTS));
    }
    return tables.at(-1)!;
  }

  return {
    add: (digest, id) => place(writableTable(), word(digest, 0), word(digest, 4), id),
    find(digest) {
      const [high, low] = [word(digest, 0), word(digest, 4)];
      const found: number[] = [];
      for (const { slots, ids, highs, lows } of tables) {
        for (let slot = low & (slots - 1); ids[slot] !== 0; slot = (slot + 1) & (slots - 1)) {
          if (lows[slot] === low && highs[slot] === high) found.push(ids[slot]!);
        }
      }
      return found.length > 1 ? found.sort((a, b) => b - a) : found;
    },
    get size() {
      return tables.reduce((sum, { size }) => sum + size, 0);
    },
  };
}

interface Table {
  slots: number;
  highs: Uint32Array;
  lows: Uint32Array;
  /** Row ids by slot. The value 0 marks a free slot. */
  ids: Float64Array;
  size: number;
  newestId: number;
}

function createTable(slots: number): Table {
  return {
    slots,
    highs: new Uint32Array(slots),
    lows: new Uint32Array(slots),
    ids: new Float64Array(slots),
    size: 0,
    newestId: 0,
  };
}

function enlarged(former: Table): Table {
  const table = createTable(Math.min(former.slots * 4, MAX_SLOTS));
  for (let slot = 0; slot < former.slots; slot++) {
    const id = former.ids[slot]!;
    if (id !== 0) place(table, former.highs[slot]!, former.lows[slot]!, id);
  }
  return table;
}

function place(table: Table, high: number, low: number, id: number): void {
  const { slots, ids } = table;
  let slot = low & (slots - 1);
  while (ids[slot] !== 0) slot = (slot + 1) & (slots - 1);
  table.highs[slot] = high;
  table.lows[slot] = low;
  ids[slot] = id;
  table.size++;
  table.newestId = Math.max(table.newestId, id);
}

function word(digest: Uint8Array, at: number): number {
  return ((digest[at]! << 24) | (digest[at + 1]! << 16) | (digest[at + 2]! << 8) | digest[at + 3]!) >>> 0;
}
