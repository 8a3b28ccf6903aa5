import { parentPort, workerData } from 'node:worker_threads';
import type { VectorIndex, VectorStore } from '../../ports/index.ts';
import { answerCall, type WorkerCall } from '../worker-calls.ts';
import { sqliteVectorIndex } from './vector-index.ts';
import { sqliteVectorStore } from './vector-store.ts';
import type { VectorDatabase } from './vectors-thread.ts';

/**
 * Entry point of the worker thread for `vectors.db` or `vectors-index.db`. On the main thread, a search would block the
 * event loop.
 */

const port = parentPort!;
const { dataDir, database } = workerData as { dataDir: string; database: VectorDatabase };
let opened: Promise<VectorStore | VectorIndex> | undefined;

function open(): Promise<VectorStore | VectorIndex> {
  opened ??= openFile().catch((error: unknown) => {
    opened = undefined;
    throw error;
  });
  return opened;
}

function openFile(): Promise<VectorStore | VectorIndex> {
  return database === 'store' ? sqliteVectorStore({ dataDir }) : sqliteVectorIndex({ dataDir });
}

port.on('message', async (call: WorkerCall) => {
  port.postMessage(await answerCall(call, open));
});
