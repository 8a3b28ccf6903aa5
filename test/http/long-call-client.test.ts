import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createLongCallClient } from '../../src/http/index.ts';

async function start(answer: RequestListener) {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = createLongCallClient('gateway');
  onTestFinished(async () => {
    await client.close();
    server.closeAllConnections();
    server.close();
  });
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return (idleTimeoutMs = 10_000, signal?: AbortSignal) =>
    client.post(base, '/x', { headers: {}, body: { a: 1 }, signal, idleTimeoutMs });
}

const LATE_MS = 2500;

test('an answer may begin as late as the caller is patient, and no later', async () => {
  const post = await start((_request, response) => {
    setTimeout(() => response.end('{"late": true}'), LATE_MS);
  });
  const [patient, hasty] = await Promise.allSettled([post(), post(500)]);
  expect(await (patient as PromiseFulfilledResult<Awaited<ReturnType<typeof post>>>).value.text()).toBe(
    '{"late": true}',
  );
  expect(hasty).toMatchObject({ status: 'rejected', reason: { code: 'UPSTREAM_TIMEOUT' } });
});

test('a stalled body is rejected; a body that keeps moving has no time limit', async () => {
  const post = await start((_request, response) => {
    let left = 4;
    const timer = setInterval(() => {
      response.write('x');
      if (--left === 0) clearInterval(timer);
    }, 400);
  });
  const pieces: string[] = [];
  const read = async (): Promise<void> => {
    for await (const piece of (await post(1200)).pieces) pieces.push(String(piece));
  };
  await expect(read()).rejects.toThrow();
  expect(pieces.join('')).toBe('xxxx');
});

test("the peer's own failure is passed on with its code and Retry-After", async () => {
  const post = await start((_request, response) => {
    response.writeHead(503, { 'retry-after': '7' });
    response.end(JSON.stringify({ error: { code: 'HOST_UNAVAILABLE', message: 'none', details: { n: 1 } } }));
  });
  await expect(post()).rejects.toMatchObject({
    code: 'HOST_UNAVAILABLE',
    details: { n: 1 },
    headers: { 'retry-after': '7' },
  });
});

test('nobody there, a connection that is cut, and a caller that leaves are no answers', async () => {
  const client = createLongCallClient('gateway');
  onTestFinished(() => client.close());
  const nobody = client.post('http://127.0.0.1:1', '/x', { headers: {}, body: {}, idleTimeoutMs: 1000 });
  await expect(nobody).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });

  const cut = await start((request) => request.socket.destroy());
  await expect(cut()).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });

  const leaving = new AbortController();
  const post = await start(() => leaving.abort());
  await expect(post(10_000, leaving.signal)).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
});
