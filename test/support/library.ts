import { join } from 'node:path';
import { expect } from 'vitest';
import { dispatch } from '../agent/support.ts';
import { startModelServer } from './openai-server.ts';

/** A project whose plugin `library` calls whatever adapter its input names. */
export const LIBRARY_PROJECT = join(import.meta.dirname, '../fixtures/projects/adapters');

/** A model of the test's own, and the config that names it. */
export async function libraryConfig() {
  const { baseUrl } = await startModelServer();
  return {
    llm: { baseUrl, models: { default: 'test-model' } },
    embeddings: { baseUrl, model: 'test-embedder' },
  };
}

/** Has `library` use each adapter, for two tenants, wherever the gateway has it run. */
export async function useEachAdapter(gateway: { url: string }): Promise<void> {
  const run = async (steps: unknown[], tenantId: string) => {
    const { body } = await dispatch(gateway, '', {
      plugin: { id: 'library' },
      handler: 'library.js#call',
      input: { steps },
      tenantId,
    });
    return body.result?.result ?? body.error;
  };
  const answers = await run(
    [
      ['storage', 'write', 'a/b', [0, 255]],
      ['storage', 'fill', 'large', 600_000],
      ['storage', 'read', 'a/b'],
      ['vectorStore', 'upsert', [{ id: 'x', vector: [1, 0] }]],
      ['vectorStore', 'search', [1, 0]],
      ['llm', 'complete', 'hello'],
      ['llm', 'stream', 'hello'],
      ['embeddings', 'embed', 'one'],
    ],
    'acme',
  );
  expect(answers).toEqual([
    null,
    null,
    { bytes: [0, 255] },
    { written: 1 },
    [{ id: 'x', score: 1, metadata: {} }],
    expect.objectContaining({ text: 'you said: hello' }),
    [{ text: 'you ' }, { text: 'said' }, { text: '', reply: expect.objectContaining({ text: 'you said' }) }],
    expect.objectContaining({ vectors: [[3, 1, 0]] }),
  ]);
  const others = [
    ['storage', 'list'],
    ['vectorStore', 'search', [1, 0]],
  ];
  expect(await run(others, 'other')).toEqual([{ items: [], nextCursor: null }, []]);
}
