import { describe, expect, test } from 'vitest';
import { CONTAINER_ENGINES, useEngine } from '../../support/containers.ts';
import { startContainerBackend } from '../container-backend.ts';
import type { TestEngine } from '../engine.ts';
import { failureOf } from '../support.ts';
import { hostile, listening, textOf, wrapServer } from './support.ts';

let engine: TestEngine;

describe.each(CONTAINER_ENGINES)('a wrapped server in a container of %s', { timeout: 120_000 }, (name) => {
  useEngine(name, (started) => {
    engine = started;
  });

  test('answers, and is as confined as under bubblewrap', async () => {
    const { port, url } = await listening();
    const { backend } = await startContainerBackend(engine, { config: { memoryMb: 256, pidsLimit: 64 } });
    const server = await wrapServer(backend, hostile({ network: [`127.0.0.1:${port}`] }));
    expect(textOf(await server.call('echo', { text: 'a' }))).toBe('{"text":"a"}');
    expect(await server.call('read', { path: '/etc/hostname' })).toMatchObject({ exitCode: 1 });
    expect(textOf(await server.call('dial', { host: '127.0.0.1', port }))).toBe('ECONNREFUSED');
    expect(JSON.parse(textOf(await server.call('fetch', { url })))).toEqual({ status: 200, body: 'hello' });
    expect(await server.call('die')).toMatchObject({ error: { code: 'MCP_SERVER_FAILED' } });
    expect(await failureOf(server.call('hang', {}, { timeoutMs: 6000 }))).toMatchObject({
      code: 'EXECUTION_TIMEOUT',
    });
    const memory = await server.call('memory').catch((error) => error);
    expect(memory).not.toMatchObject({ exitCode: 0 });
  });
});
