import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { STOP_DEADLINES } from '../../src/kit/time/stop-deadlines.ts';
import { listenBare } from './bare-http.ts';

const DRAIN_MS = 200;

test('the deadlines of a stop are in order', () => {
  const { httpCutMs, processEndMs, forceMs } = STOP_DEADLINES;
  const deadlines = [httpCutMs, processEndMs, forceMs];
  expect(deadlines).toEqual([...new Set(deadlines)].toSorted((a, b) => a - b));
});

test('a drain ends before its process does while connections keep coming', async () => {
  const { http, port } = await listenBare((bare) => bare.post('/slow', () => new Promise(() => {})), {
    drainMs: DRAIN_MS,
  });
  const open = () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    socket.write('POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n');
    onTestFinished(() => void socket.destroy());
  };
  open();
  await sleep(50);
  const arrivals = setInterval(open, 5);
  onTestFinished(() => clearInterval(arrivals));
  const startedAt = performance.now();
  await http.close();
  expect(performance.now() - startedAt).toBeLessThan(DRAIN_MS + STOP_DEADLINES.processEndMs);
});

test('a drain ends connections on which no request came', async () => {
  const { http, port } = await listenBare(() => {});
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  await once(http.server, 'connection');
  const closed = once(socket, 'close');
  const startedAt = performance.now();
  await http.close();
  await closed;
  expect(performance.now() - startedAt).toBeLessThan(STOP_DEADLINES.httpCutMs + 7000);
});

test('a drain answers a request that comes some time after its connection', async () => {
  const { http, port } = await listenBare((bare) => bare.get('/', async () => 'answered'));
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  await once(http.server, 'connection');
  const reply = socket.setEncoding('utf8').toArray();
  const closed = http.close();
  await expect.poll(() => http.server.listening).toBe(false);
  await sleep(100);
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  expect((await reply).join('')).toContain('answered');
  await closed;
});
