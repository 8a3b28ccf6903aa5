import { Worker } from 'node:worker_threads';
import { entryFile } from '../../../kit/files/paths.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import { minutes } from '../../../kit/time/duration.ts';
import type { VectorIndex, VectorStore } from '../../ports/index.ts';
import { createWorkerCalls, type WorkerCalls } from '../worker-calls.ts';

const IDLE_MS = minutes(1);

export interface VectorThreadOptions {
  dataDir: string;
  clock: Clock;
}

/** Database that the worker thread opens: the vector store, or the index of vectors in PostgreSQL. */
export type VectorDatabase = 'store' | 'index';

/** Vector store that runs on a worker thread. The first call starts the thread. */
export function threadedVectorStore(options: VectorThreadOptions): VectorStore {
  const { call, close } = startOnCall('store', options);
  return {
    upsert: (...args) => call('upsert', args),
    search: (...args) => call('search', args),
    delete: (...args) => call('delete', args),
    close,
  };
}

/** Vector index that runs on a worker thread. The first call starts the thread. */
export function threadedVectorIndex(options: VectorThreadOptions): VectorIndex {
  const { call, close } = startOnCall('index', options);
  return {
    position: (...args) => call('position', args),
    apply: (...args) => call('apply', args),
    search: (...args) => call('search', args),
    drop: (...args) => call('drop', args),
    close,
  };
}

function startOnCall(database: VectorDatabase, { dataDir, clock }: VectorThreadOptions): WorkerCalls {
  return createWorkerCalls({
    start: () => new Worker(entryFile('vectors'), { workerData: { dataDir, database }, execArgv: [] }),
    clock,
    idleMs: IDLE_MS,
    name: `vector ${database}`,
  });
}
