import { Worker } from 'node:worker_threads';
import { entryFile } from '../../../kit/files/paths.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import { minutes } from '../../../kit/time/duration.ts';
import type { VectorStore } from '../../ports/index.ts';
import { createWorkerCalls } from '../worker-calls.ts';

const IDLE_MS = minutes(1);

/** Vector store that runs on a worker thread. The first call starts the thread. */
export function threadedVectorStore({ dataDir, clock }: { dataDir: string; clock: Clock }): VectorStore {
  const { call, close } = createWorkerCalls({
    start: () => new Worker(entryFile('vectors'), { workerData: { dataDir }, execArgv: [] }),
    clock,
    idleMs: IDLE_MS,
    name: 'vector store',
  });
  return {
    upsert: (...args) => call('upsert', args),
    search: (...args) => call('search', args),
    delete: (...args) => call('delete', args),
    close,
  };
}
