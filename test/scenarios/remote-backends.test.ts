import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPeers } from '../../src/daemons/peers.ts';
import { state } from '../../src/daemons/state/index.ts';
import { PROJECT, startTestAgent } from '../agent/support.ts';
import { startRest } from '../daemons/rest/support.ts';
import { engineMissing, startEngine, type TestEngine } from '../plugins/engine.ts';
import { sharedByTests } from '../support/at-end.ts';
import { startTestDaemon } from '../support/daemon.ts';
import { ADMIN_TOKEN, startGateway, type TestGateway } from '../support/gateway.ts';

/** Large inputs and results, and streams, of plugins that run on hosts and in containers: from a client and back. */
const MEGABYTE = 1024 * 1024;

let engine: TestEngine | undefined;

beforeAll(async () => {
  if (engineMissing === undefined) engine = await startEngine();
}, 120_000);
afterAll(async () => {
  await engine?.stop();
}, 60_000);

/** The gateway, REST and state as they are in production, and whatever runs the plugin. */
async function start(backend: 'host' | 'container') {
  const { url } = await startTestDaemon(state);
  const peers = createPeers({ state: url });
  const execution = {
    plugins: { '@acme/tools': { backend } },
    ...(engine ? { container: { socket: engine.socket } } : {}),
  };
  const gateway = await startGateway({ projectDir: PROJECT, peers, config: { execution } });
  const rest = await startRest({ projectDir: PROJECT, peers, config: { execution } });
  peers.set({ gateway: gateway.url, rest: rest.url });
  if (backend === 'host') await startTestAgent(gateway);
  return { gateway, rest };
}

const call = (gateway: TestGateway, path: string, init: RequestInit = {}) =>
  gateway.fetch(`/api/v1/plugins/tools/${path}`, {
    ...init,
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
  });

describe.each(['host', ...(engineMissing === undefined ? (['container'] as const) : [])] as const)(
  'through a %s',
  { timeout: 90_000 },
  (backend) => {
    const platform = sharedByTests(() => start(backend));

    test('five megabytes go in and come out', async () => {
      const { gateway } = platform();
      // Characters of one to four bytes, and those that JSON escapes.
      const text = 'aä€😀"\\\n'.repeat((5 * MEGABYTE) / 14);
      const reply = await call(gateway, 'echo', { method: 'POST', body: JSON.stringify({ text }) });
      const { text: echoed } = (await reply.json()) as { text: string };
      expect([reply.status, echoed.length, echoed === text]).toEqual([200, text.length, true]);
    });

    test('fifty megabytes are streamed, byte for byte', async () => {
      const { gateway } = platform();
      const reply = await call(gateway, 'bytes?megabytes=50');
      expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'image/x-test']);
      const digest = createHash('sha256');
      let length = 0;
      for await (const piece of reply.body!) {
        digest.update(piece);
        length += piece.length;
      }
      const expected = Buffer.alloc(50 * MEGABYTE);
      for (let at = 0; at < expected.length; at++) expected[at] = at % 251;
      expect(length).toBe(expected.length);
      expect(digest.digest('hex')).toBe(createHash('sha256').update(expected).digest('hex'));
    });

    test('events arrive as they are sent', async () => {
      const { gateway } = platform();
      const reply = await call(gateway, 'events');
      expect(reply.headers.get('content-type')).toBe('text/event-stream');
      const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
      expect((await reader.read()).value).toBe('id: 1\ndata: first\n\n');
      const firstAt = performance.now();
      expect((await reader.read()).value).toBe('id: 2\ndata: {"second":"ü"}\n\n');
      expect(performance.now() - firstAt).toBeGreaterThan(500);
      expect((await reader.read()).done).toBe(true);
    });

    test('a client that disconnects ends the handler', async () => {
      const { gateway } = platform();
      const leaving = new AbortController();
      const reply = await call(gateway, 'bytes?megabytes=400', { signal: leaving.signal });
      const reader = reply.body!.getReader();
      await reader.read();
      leaving.abort();
      await expect
        .poll(() => gateway.logs.lines.findLast(({ message }) => message === 'source closed'))
        .toMatchObject({ meta: { aborted: true }, pluginId: '@acme/tools' });
    });

    test('a stream that fails is cut, and the log says why', async () => {
      const { gateway, rest } = platform();
      const reply = await call(gateway, 'breaks');
      await expect(reply.text()).rejects.toThrow();
      expect(gateway.logs.lines).toContainEqual(
        expect.objectContaining({ message: expect.stringContaining('the rest is gone') }),
      );
      await expect
        .poll(() => rest.logs.lines.map(({ message }) => message))
        .toContain('GET /api/v1/plugins/tools/breaks 500');
    });

    test("a stream on which nothing moves for the route's time is cut", async () => {
      const { gateway } = platform();
      const reader = (await call(gateway, 'stalls')).body!.pipeThrough(new TextDecoderStream()).getReader();
      expect((await reader.read()).value).toBe('begun');
      gateway.clock.advance(4001);
      await expect(reader.read()).rejects.toThrow();
    });
  },
);
