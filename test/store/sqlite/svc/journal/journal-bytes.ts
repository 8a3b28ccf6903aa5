import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { maxFrameBytes, writeFrame } from '../../../../../src/store/sqlite/svc/journal/frame.ts';
import { headerBytes, newHeader } from '../../../../../src/store/sqlite/svc/journal/header.ts';

export interface Content {
  units: string;
  parts: Uint8Array[];
}

/** A frame and its end mark, and how much of that the frame is. */
export function frameBytes(
  { units, parts }: Content,
  sequence: number,
  salt: Uint8Array,
): { bytes: Buffer; end: number } {
  const packed = { units, parts, length: parts.reduce((sum, part) => sum + part.length, 0) };
  const target = Buffer.alloc(maxFrameBytes(packed));
  const { end, written } = writeFrame(target, packed, sequence, salt);
  return { bytes: target.subarray(0, written), end };
}

/** A file of the journal of this database, one turn of frames, with what an earlier turn left behind them. */
export function journalBytes(
  database: Buffer,
  contents: readonly Content[],
  { first = 1, leftovers = [] as readonly Content[] } = {},
): Buffer {
  const header = newHeader(database);
  const head = headerBytes(header);
  const turn = turnBytes(contents, first, header.salt);
  const earlier = turnBytes(leftovers, first - leftovers.length, header.salt);
  return Buffer.concat([head, turn, earlier.subarray(Math.min(turn.length, earlier.length))]);
}

function turnBytes(contents: readonly Content[], first: number, salt: Buffer): Buffer {
  const frames = contents.map((content, n) => frameBytes(content, first + n, salt));
  return Buffer.concat(
    frames.map(({ bytes, end }, n) => (n === frames.length - 1 ? bytes : bytes.subarray(0, end))),
  );
}

/** What `svc.db` says its journal's id is. */
export function databaseOf(dataDir: string): Buffer {
  const sqlite = new Sqlite(join(dataDir, 'svc.db'), { readonly: true });
  const { id } = sqlite.prepare<[], { id: Buffer }>('select id from delivery_journal').get()!;
  sqlite.close();
  return id;
}
