import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { takePlainRequests } from '../../src/http/index.ts';
import { STOP_DEADLINES } from '../../src/kit/stop-deadlines.ts';
import { listenBare } from './bare-http.ts';

const DRAIN_MS = 200;

test('the deadlines of a stop are in order', () => {
  const { httpCutMs, siblingKillMs, processEndMs, forceMs } = STOP_DEADLINES;
  const deadlines = [httpCutMs, siblingKillMs, processEndMs, forceMs];
  expect(deadlines).toEqual([...new Set(deadlines)].toSorted((a, b) => a - b));
});

test.each(['/slow', '/plain'])(
  'a drain ends before its process does while connections to %s keep coming',
  async (path) => {
    const { http, port } = await listenBare(
      (bare) => {
        takePlainRequests(bare, { prefix: '/plain', take: () => true });
        bare.post('/slow', () => new Promise(() => {}));
      },
      { drainMs: DRAIN_MS },
    );
    const open = () => {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`);
      onTestFinished(() => void socket.destroy());
    };
    open();
    await sleep(50);
    const arrivals = setInterval(open, 5);
    onTestFinished(() => clearInterval(arrivals));
    const startedAt = performance.now();
    await http.close();
    expect(performance.now() - startedAt).toBeLessThan(DRAIN_MS + STOP_DEADLINES.processEndMs);
  },
);
