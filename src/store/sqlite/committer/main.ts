import { parentPort, workerData } from 'node:worker_threads';
import Sqlite from 'better-sqlite3';
import { codeOf, messageOf } from '../../../kit/errors.ts';
import { configureConnection } from '../connection.ts';
import { transactions } from '../group-commit.ts';
import type {
  CommitterReply,
  CommitterRequest,
  CommitterStart,
  PackedUnit,
  PackedValue,
  UnitOutcome,
} from './protocol.ts';

/** Another process may hold the lock for a backup step; this thread has nothing else to do than wait for it. */
const LOCK_WAIT_MS = 10_000;
/** Pages in the log before they are moved into the file: rarer than SQLite's 1000, each move costs a sync of its own. */
const CHECKPOINT_PAGES = 4000;

/** The thread that commits: its connection writes what it is sent, one transaction a request. */
const { file, statements } = workerData as CommitterStart;
const sqlite = new Sqlite(file, { timeout: LOCK_WAIT_MS });
configureConnection(sqlite);
sqlite.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
const prepared = statements.map((text) => sqlite.prepare<unknown[]>(text));
const { together, apart } = transactions(sqlite);

function run({ guarded, steps }: PackedUnit, bytes: ArrayBuffer): { changes: number; rowid: number } {
  let first: { changes: number; rowid: number } | undefined;
  for (const [statement, values] of steps) {
    const { changes, lastInsertRowid } = prepared[statement]!.run(
      ...values.map((value) => bindable(value, bytes)),
    );
    first ??= { changes, rowid: Number(lastInsertRowid) };
    if (guarded && first.changes === 0) break;
  }
  return first!;
}

function bindable(value: PackedValue, bytes: ArrayBuffer): unknown {
  return Array.isArray(value) ? Buffer.from(bytes, value[0], value[1]) : value;
}

function commit(units: PackedUnit[], bytes: ArrayBuffer): CommitterReply {
  const writes = units.map((unit) => ({ work: () => run(unit, bytes) }));
  for (const attempt of [together, apart]) {
    try {
      return attempt(writes).map(outcomeOf);
    } catch (error) {
      if (units.length === 1) return [failure(error)];
    }
  }
  // The transaction itself was lost (a full disk): those that fit alone are not refused with the rest.
  return units.flatMap((unit) => commit([unit], bytes));
}

function outcomeOf(outcome: { value: unknown } | { error: unknown }): UnitOutcome {
  return 'error' in outcome ? failure(outcome.error) : (outcome.value as UnitOutcome);
}

function failure(error: unknown): UnitOutcome {
  return { error: { message: messageOf(error), code: codeOf(error) } };
}

parentPort!.on('message', (request: CommitterRequest) => {
  if ('close' in request) {
    sqlite.close();
    parentPort!.close();
  } else parentPort!.postMessage(commit(request.units, request.bytes));
});
