import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { type TestPlatform, testPlatform, withStandIns } from '../cli/platform.ts';
import { atEnd } from '../support/at-end.ts';
import { tempDir } from '../support/daemon.ts';
import { freePort } from '../support/ports.ts';

const HAS_HAPROXY = spawnSync('haproxy', ['-v']).status === 0;
const TOKEN = 'token-of-the-load';
const DRAIN_DELAY_MS = 1000;

/** Without retries, each request that reaches a closed port fails. */
const configFor = (port: number, gateways: readonly string[]): string => `
defaults
  mode http
  retries 0
  timeout connect 1s
  timeout client 20s
  timeout server 20s
  timeout check 10s
frontend all
  bind 127.0.0.1:${port}
  default_backend gateways
backend gateways
  option httpchk GET /ready
  http-check expect status 200
  default-server check inter 200ms fall 2 rise 2
${gateways.map((url, n) => `  server gateway${n} ${new URL(url).host}`).join('\n')}
`;

async function startHaproxy(gateways: readonly string[]): Promise<string> {
  const port = await freePort();
  const file = join(await tempDir(), 'haproxy.cfg');
  await writeFile(file, configFor(port, gateways));
  execFileSync('haproxy', ['-c', '-q', '-f', file]);
  const child: ChildProcess = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' });
  atEnd(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  return `http://127.0.0.1:${port}`;
}

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

describe.skipIf(!HAS_HAPROXY)(
  HAS_HAPROXY ? 'behind HAProxy' : 'HAProxy is not installed: apt install haproxy',
  () => {
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
  },
);
