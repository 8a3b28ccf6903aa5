import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { type TestPlatform, testPlatform, withStandIns } from '../cli/platform.ts';
import { HAPROXY_MISSING, HAS_HAPROXY, startHaproxy } from '../support/haproxy.ts';

const TOKEN = 'token-of-the-load';
const DRAIN_DELAY_MS = 1000;

async function startGateway(processes: number): Promise<TestPlatform & { url: string }> {
  const gateway = {
    port: 0,
    processes,
    drainDelayMs: DRAIN_DELAY_MS,
    staticTokens: { [TOKEN]: { hostId: 'load', namespaceId: 'default' } },
  };
  const platform = await testPlatform(...withStandIns({ config: { gateway }, real: ['gateway'] }));
  expect((await platform.svc('up', '-d')).code).toBe(0);
  return { ...platform, url: (await platform.service('gateway')).url };
}

/** Sends authenticated requests with a pause after each, and counts their outcomes by status or error. */
function startLoad(url: string, { clients, pauseMs }: { clients: number; pauseMs: number }) {
  const outcomes: Record<string, number> = {};
  let isOver = false;
  const send = async (): Promise<void> => {
    while (!isOver) {
      const outcome = await fetch(`${url}/api/v1/whoami`, {
        headers: { authorization: `Bearer ${TOKEN}` },
      }).then(
        async (response) => {
          await response.arrayBuffer();
          return String(response.status);
        },
        (error: Error) => String(error.cause ?? error),
      );
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      if (pauseMs > 0) await sleep(pauseMs);
    }
  };
  const sending = Promise.all(Array.from({ length: clients }, send));
  return {
    outcomes,
    async stop() {
      isOver = true;
      await sending;
    },
  };
}

describe.skipIf(!HAS_HAPROXY)(HAS_HAPROXY ? 'behind HAProxy' : HAPROXY_MISSING, () => {
  // A draining server accepts requests while more arrive; only pauses show the gap between its end and the next check.
  test.each([
    { processes: 1, clients: 16, pauseMs: 0 },
    { processes: 2, clients: 16, pauseMs: 0 },
    { processes: 1, clients: 2, pauseMs: 100 },
  ])(
    'svc down of one of two gateways fails no request: %j',
    async ({ processes, ...pace }) => {
      const [one, two] = [await startGateway(processes), await startGateway(processes)];
      const proxy = await startHaproxy([one.url, two.url]);
      await vi.waitFor(async () => expect((await fetch(`${proxy}/ready`)).status).toBe(200), 10_000);
      const load = startLoad(proxy, pace);
      const count = (): number => load.outcomes['200'] ?? 0;
      await expect.poll(count, { timeout: 20_000 }).toBeGreaterThan(20);

      expect((await one.svc('down')).json.result.stopped).toBe(true);

      const before = count();
      await expect.poll(count, { timeout: 20_000 }).toBeGreaterThan(before + 20);
      await load.stop();
      expect(Object.keys(load.outcomes)).toEqual(['200']);
    },
    120_000,
  );
});
