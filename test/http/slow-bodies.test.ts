import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { listenBare } from './bare-http.ts';

const IDLE_MS = 300;
const HEAD = 'POST /take HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n';

/** A server that reads bodies by `/take`, and by `/hold` lets them wait. */
async function server(): Promise<number> {
  const { port } = await listenBare(
    (http) => {
      http.post('/take', async ({ body }) => ({ body }));
      http.post('/late', async ({ body }) => sleep(4 * IDLE_MS, { body }));
    },
    { bodyIdleMs: IDLE_MS },
  );
  return port;
}

/** Sends pieces with pauses; all that came back, and how long it took to be cut off. */
async function trickle(
  port: number,
  pieces: string[],
  pauseMs: number,
): Promise<{ text: string; ms: number }> {
  const startedAt = performance.now();
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  let text = '';
  socket.setEncoding('latin1').on('data', (part) => {
    text += part;
  });
  const closed = new Promise<void>((resolve) =>
    socket.on('close', () => resolve()).on('error', () => resolve()),
  );
  for (const piece of pieces) {
    if (socket.destroyed) break;
    socket.write(piece);
    await sleep(pauseMs);
  }
  await Promise.race([closed, sleep(6 * IDLE_MS)]);
  return { text, ms: performance.now() - startedAt };
}

test('a stalled body is 408, and its connection is closed', async () => {
  const port = await server();
  const announced = await trickle(port, [`${HEAD}content-length: 20\r\n\r\n"abc`], 0);
  expect(announced.text).toMatch(/^HTTP\/1\.1 408[\s\S]*connection: close[\s\S]*REQUEST_TIMEOUT/i);
  expect(announced.ms).toBeLessThan(5 * IDLE_MS);
  const chunked = await trickle(port, [`${HEAD}transfer-encoding: chunked\r\n\r\n4\r\n"abc\r\n`], 0);
  expect(chunked.text).toMatch(/^HTTP\/1\.1 408/);
});

test('a body that makes progress has no time limit', async () => {
  const port = await server();
  const letters = [...'"abcdefgh"'];
  const { text, ms } = await trickle(
    port,
    [`${HEAD}connection: close\r\ncontent-length: ${letters.length}\r\n\r\n`, ...letters],
    IDLE_MS / 3,
  );
  expect(text).toMatch(/^HTTP\/1\.1 200[\s\S]*abcdefgh/);
  expect(ms).toBeGreaterThan(3 * IDLE_MS);
});

test('a client that waits for the answer is not disconnected', async () => {
  const port = await server();
  const head = HEAD.replace('/take', '/late');
  const { text } = await trickle(port, [`${head}connection: close\r\ncontent-length: 3\r\n\r\n"a"`], 0);
  expect(text).toMatch(/^HTTP\/1\.1 200/);
});
