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
} from './protocol.ts';

/** Another process may hold the lock for a backup step; this thread has nothing else to do than wait for it. */
const LOCK_WAIT_MS = 10_000;
/** Pages in the log before they are moved into the file: rarer than SQLite's 1000, each move costs a sync of its own. */
const CHECKPOINT_PAGES = 4000;

/** What a unit's first step changed, and the rowid that it made. */
type Result = readonly [changes: number, rowid: number];
type Outcome = { value: unknown } | { error: unknown };

/** The thread that commits: its connection writes what it is sent, one transaction a request. */
const { file, statements } = workerData as CommitterStart;
const sqlite = new Sqlite(file, { timeout: LOCK_WAIT_MS });
configureConnection(sqlite);
sqlite.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
const prepared = statements.map((text) => sqlite.prepare<unknown[]>(text));
const { together, apart } = transactions(sqlite);
const NOTHING: Result = [0, 0];

function run([guarded, ...steps]: PackedUnit, bytes: ArrayBuffer): Result {
  let first: Result | undefined;
  for (let i = 0; i < steps.length; i += 2) {
    const values = steps[i + 1] as readonly PackedValue[];
    const { changes, lastInsertRowid } = prepared[steps[i] as number]!.run(
      ...values.map((value) => bindable(value, bytes)),
    );
    first ??= [changes, Number(lastInsertRowid)];
    if (guarded && first[0] === 0) break;
  }
  return first!;
}

function bindable(value: PackedValue, bytes: ArrayBuffer): unknown {
  return Array.isArray(value) ? Buffer.from(bytes, value[0], value[1]) : value;
}

function commit(units: readonly PackedUnit[], bytes: ArrayBuffer): Outcome[] {
  const writes = units.map((unit) => ({ work: () => run(unit, bytes) }));
  for (const attempt of [together, apart]) {
    try {
      return attempt(writes);
    } catch (error) {
      if (units.length === 1) return [{ error }];
    }
  }
  // The transaction itself was lost (a full disk): those that fit alone are not refused with the rest.
  return units.flatMap((unit) => commit([unit], bytes));
}

function replyOf(outcomes: readonly Outcome[]): CommitterReply {
  const reply: CommitterReply = { results: [], failures: [] };
  for (const [place, outcome] of outcomes.entries()) {
    reply.results.push(...('error' in outcome ? NOTHING : (outcome.value as Result)));
    if ('error' in outcome) {
      const { error } = outcome;
      reply.failures.push([place, { message: messageOf(error), code: codeOf(error) }]);
    }
  }
  return reply;
}

parentPort!.on('message', (request: CommitterRequest) => {
  if ('close' in request) {
    sqlite.close();
    parentPort!.close();
  } else {
    const units = JSON.parse(request.units) as PackedUnit[];
    parentPort!.postMessage(replyOf(commit(units, request.bytes)));
  }
});
