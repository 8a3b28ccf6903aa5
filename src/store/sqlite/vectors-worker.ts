import { parentPort, workerData } from 'node:worker_threads';
import type { VectorStore } from '../ports/index.ts';
import { answerQuestion, type ThreadQuestion } from './asked-thread.ts';
import { sqliteVectorStore } from './vectors.ts';

/** The thread that has `vectors.db` open: a search looks at every vector of its collection, and stops nobody meanwhile. */

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
port.on('message', async (question: ThreadQuestion) => {
  port.postMessage(await answerQuestion(question, open));
});
