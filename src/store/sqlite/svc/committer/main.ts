import { parentPort, workerData } from 'node:worker_threads';
import Sqlite from 'better-sqlite3';
import { codeOf, messageOf } from '../../../../kit/errors/errors.ts';
import { configureConnection } from '../../connection.ts';
import { transactions } from '../../group-commit.ts';
import { isBusy } from '../../store-error.ts';
import { readRange } from '../journal/files.ts';
import { readFrames } from '../journal/frame.ts';
import { createApplier } from './apply.ts';
import {
  type ApplyReply,
  type BatchReply,
  type CommitterRequest,
  type CommitterStart,
  type Failure,
  MARKER_DIGEST_BYTES,
  type MarkerRange,
  type MarkersReply,
  type PackedUnit,
  type PackedValue,
  type Ready,
} from './protocol.ts';

/** Maximum time to wait for a lock. The value is high, because a backup can hold the lock for a long time. */
const LOCK_WAIT_MS = 10_000;
/** Time limit of one attempt to get the lock, in ms. The thread checks for a shutdown between attempts. */
const LOCK_TRY_MS = 200;
/**
 * WAL pages per checkpoint. SQLite's default is 1000. A higher value saves fsyncs, because checkpoints are less
 * frequent.
 */
const CHECKPOINT_PAGES = 4000;

/** Number of rows that the first step of a write changed, and the rowid that this step inserted. */
type Result = readonly [changes: number, rowid: number];
type Outcome = { value: unknown } | { error: unknown };

/** Entry point of the committer thread, which commits batches of writes and applies the journal. */
const { file, statements, recover, stopWaiting } = workerData as CommitterStart;
const sqlite = new Sqlite(file, { timeout: LOCK_WAIT_MS });
configureConnection(sqlite);
sqlite.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
const prepared = new Map(
  Object.entries(statements).map(([name, text]) => [name, sqlite.prepare<unknown[]>(text)]),
);
sqlite.pragma(`busy_timeout = ${LOCK_TRY_MS}`);
const { runBatch, runSeparately } = transactions(sqlite);
const NOTHING: Result = [0, 0];

/** Retries `work` while another process holds the lock, for at most LOCK_WAIT_MS. */
function retryBusy<T>(work: () => T): T {
  for (let waited = LOCK_TRY_MS; ; waited += LOCK_TRY_MS) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || waited >= LOCK_WAIT_MS || Atomics.load(stopWaiting, 0) !== 0) throw error;
    }
  }
}

function run([guarded, ...steps]: PackedUnit, bytes: Uint8Array): Result {
  let first: Result | undefined;
  for (let i = 0; i < steps.length; i += 2) {
    const values = steps[i + 1] as readonly PackedValue[];
    const { changes, lastInsertRowid } = statement(steps[i] as string).run(
      ...values.map((value) => bindable(value, bytes)),
    );
    first ??= [changes, Number(lastInsertRowid)];
    if (guarded && first[0] === 0) break;
  }
  return first!;
}

function statement(name: string): Sqlite.Statement<unknown[]> {
  const found = prepared.get(name);
  if (!found)
    throw new Error(
      `The journal beside ${file} has the step "${name}", which this version of svc does not know: a newer version wrote it. Start that version.`,
    );
  return found;
}

function bindable(value: PackedValue, bytes: Uint8Array): unknown {
  return Array.isArray(value) ? Buffer.from(bytes.buffer, bytes.byteOffset + value[0], value[1]) : value;
}

function commit(units: readonly PackedUnit[], bytes: Uint8Array): Outcome[] {
  const writes = units.map((unit) => ({ work: () => run(unit, bytes) }));
  for (const attempt of [runBatch, runSeparately]) {
    try {
      return retryBusy(() => attempt(writes));
    } catch (error) {
      // A locked database would also reject each write on its own, so separate attempts are useless.
      if (units.length === 1 || isBusy(error)) return units.map(() => ({ error }));
    }
  }
  // The whole transaction failed, for example because the disk is full. Small writes might still succeed when they are
  // committed separately.
  return units.flatMap((unit) => commit([unit], bytes));
}

function replyOf(outcomes: readonly Outcome[]): BatchReply {
  const reply: BatchReply = { results: [], failures: [] };
  for (const [place, outcome] of outcomes.entries()) {
    reply.results.push(...('error' in outcome ? NOTHING : (outcome.value as Result)));
    if ('error' in outcome) reply.failures.push([place, failureOf(outcome.error)]);
  }
  return reply;
}

function failureOf(error: unknown): Failure {
  return { message: messageOf(error), code: codeOf(error) };
}

const readMarkers = sqlite
  .prepare<[number, number, number], [number, Buffer]>(
    'select id, digest from delivery_marker where id > ? and id <= ? order by id limit ?',
  )
  .raw();

function markersOf({ after, until, limit }: MarkerRange): MarkersReply {
  try {
    const rows = retryBusy(() => readMarkers.all(after, until, limit));
    const ids = new Float64Array(rows.length);
    const digests = new Uint8Array(rows.length * MARKER_DIGEST_BYTES);
    for (const [place, [id, digest]] of rows.entries()) {
      ids[place] = id;
      digests.set(digest.subarray(0, MARKER_DIGEST_BYTES), place * MARKER_DIGEST_BYTES);
    }
    return { ids, digests };
  } catch (error) {
    return { ids: new Float64Array(), digests: new Uint8Array(), failure: failureOf(error) };
  }
}

const applier = createApplier(sqlite, (batch) => retryBusy(() => runBatch(batch)), run);

function answer(request: Exclude<CommitterRequest, { close: true }>): BatchReply | ApplyReply | MarkersReply {
  if ('markers' in request) return markersOf(request.markers);
  if ('units' in request)
    return replyOf(commit(JSON.parse(request.units) as PackedUnit[], new Uint8Array(request.bytes)));
  try {
    applier.apply(readFrames(readRange(request.apply)));
    return { applied: applier.applied };
  } catch (error) {
    return { applied: applier.applied, failure: failureOf(error) };
  }
}

function begin(): Ready {
  try {
    return {
      ready:
        recover === undefined
          ? { units: 0, quarantine: undefined, damagedHeaders: [] }
          : applier.recover(recover),
    };
  } catch (error) {
    return { failure: failureOf(error) };
  }
}

parentPort!.on('message', (request: CommitterRequest) => {
  if ('close' in request) {
    sqlite.close();
    parentPort!.close();
  } else parentPort!.postMessage(answer(request));
});
parentPort!.postMessage(begin());
