import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { statusText } from '../../src/cli/commands/status/view.ts';
import { createStyle } from '../../src/cli/style.ts';
import { PlatformConfig } from '../../src/contracts/index.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import { manualClock } from '../../src/kit/time/clock.ts';
import { minutes, seconds } from '../../src/kit/time/duration.ts';
import type { SupervisorEvent } from '../../src/supervisor/control-protocol.ts';
import { createManagedService } from '../../src/supervisor/managed-service.ts';
import { TEST_KEYS, tempDir } from '../support/daemon.ts';

/** The state service as a process of its own, under a clock that stands still. */
async function start(name: 'state' | 'workflow' = 'state') {
  const dataDir = await tempDir();
  await mkdir(join(dataDir, 'run'));
  const clock = manualClock();
  const events: SupervisorEvent[] = [];
  const service = createManagedService({
    name,
    clock,
    // The longest pause of each range.
    random: { ...systemRandom(), fraction: () => 1 },
    describe: () => ({
      start: {
        config: PlatformConfig.parse({}),
        profile: 'development',
        projectDir: dataDir,
        configFile: null,
        dataDir,
        keys: TEST_KEYS,
        operator: null,
        peers: {},
        listen: { host: '127.0.0.1', port: 0 },
      },
      env: process.env,
    }),
    keepsPort: () => true,
    onLines() {},
    onEvent: (event) => events.push(event),
    onListening() {},
    onProcess() {},
  });
  onTestFinished(() => service.stop());
  await service.start();

  /** Kills the process and resolves with the event of its end. */
  async function crash(signal: NodeJS.Signals = 'SIGKILL'): Promise<SupervisorEvent> {
    const before = events.length;
    process.kill(service.status().pid!, signal);
    await expect.poll(() => events.length, { timeout: 20_000 }).toBe(before + 1);
    return events.at(-1)!;
  }
  const untilReady = () => expect.poll(() => service.status().state, { timeout: 20_000 }).toBe('ready');
  return { service, clock, crash, untilReady, dataDir };
}

test('a service in a crash loop is started again after growing pauses, and the status says when', async () => {
  const { service, clock, crash, untilReady } = await start();
  const { port } = service.status();
  for (const retryInMs of [250, 500, 1000, 2000]) {
    expect(await crash()).toMatchObject({ type: 'crashed', retryInMs });
    clock.advance(retryInMs);
    await untilReady();
  }
  for (const retryInMs of [30, 60, 120].map(seconds)) {
    expect(await crash()).toMatchObject({ type: 'crash-loop', retryInMs });
    const nextStartAt = clock.now() + retryInMs;
    expect(service.status()).toMatchObject({ state: 'failed', pid: null, nextStartAt });
    const text = statusText({ services: [service.status()] }, createStyle({ isTTY: false }, {}));
    expect(text).toContain(`signal SIGKILL; restarts at ${new Date(nextStartAt).toISOString()}`);
    clock.advance(retryInMs - 1);
    expect(service.status().state).toBe('failed');
    clock.advance(1);
    await untilReady();
    expect(service.status()).toMatchObject({ nextStartAt: null, port });
  }
  // Stable from then on: the next crash is the first one again.
  clock.advance(minutes(1));
  expect(await crash()).toMatchObject({ type: 'crashed', retryInMs: 250 });
}, 120_000);

test('a stop calls off the start that is due', async () => {
  const { service, clock, crash } = await start();
  await crash();
  expect(service.status().nextStartAt).not.toBeNull();
  await service.stop();
  clock.advance(minutes(10));
  expect(service.status()).toMatchObject({ state: 'stopped', nextStartAt: null, pid: null });
}, 60_000);

test('the next process knows whether the one before died of a fault of its own or was killed', async () => {
  const { clock, crash, untilReady, dataDir } = await start('workflow');
  const deaths = (): unknown[] => {
    const file = new Sqlite(join(dataDir, 'workflow.db'), { readonly: true });
    try {
      return file
        .prepare('select had_fault from boot where ended_at is not null order by fence')
        .pluck()
        .all();
    } finally {
      file.close();
    }
  };
  for (const signal of ['SIGKILL', 'SIGABRT', 'SIGKILL'] as const) {
    const event = await crash(signal);
    clock.advance(event.type === 'crashed' ? event.retryInMs : 0);
    await untilReady();
  }
  await expect.poll(deaths).toEqual([0, 1, 0]);
}, 120_000);
