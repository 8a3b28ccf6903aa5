import { parentPort, workerData } from 'node:worker_threads';
import type { VectorStore } from '../../ports/index.ts';
import { answerCall, type WorkerCall } from '../worker-calls.ts';
import { sqliteVectorStore } from './vector-store.ts';

/** Entry point of the worker thread for `vectors.db`. On the main thread, a search would block the event loop. */

const port = parentPort!;
const { dataDir } = workerData as { dataDir: string };
let opened: Promise<VectorStore> | undefined;

function open(): Promise<VectorStore> {
  opened ??= sqliteVectorStore({ dataDir }).catch((error: unknown) => {
    opened = undefined;
    throw error;
  });
  return opened;
}
port.on('message', async (call: WorkerCall) => {
  port.postMessage(await answerCall(call, open));
});
