import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { statusText } from '../../src/cli/commands/status/service-table.ts';
import { createStyle } from '../../src/cli/style.ts';
import { PlatformConfig, type ServiceName } from '../../src/contracts/index.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import { manualClock } from '../../src/kit/time/clock.ts';
import { minutes, seconds } from '../../src/kit/time/duration.ts';
import { STOP_DEADLINES } from '../../src/kit/time/stop-deadlines.ts';
import type { SupervisorEvent } from '../../src/supervisor/control-protocol.ts';
import { waitHealthy } from '../../src/supervisor/health.ts';
import { ManagedService } from '../../src/supervisor/managed-service.ts';
import type { ManagedServiceOptions } from '../../src/supervisor/managed-service-options.ts';
import { spawnService } from '../../src/supervisor/service-process.ts';
import { TEST_KEYS, tempDir } from '../support/daemon.ts';
import { fakeProcesses } from './support/fake-processes.ts';

/** A service under a clock that stands still, in real processes or those given. */
function manage(
  name: ServiceName,
  dataDir: string,
  processes: Pick<ManagedServiceOptions, 'spawn' | 'waitHealthy'>,
) {
  const clock = manualClock();
  const events: SupervisorEvent[] = [];
  const service = new ManagedService({
    name,
    clock,
    ...processes,
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
  return { service, clock, events };
}

/** A running service whose processes are fakes; `crash` ends the current one and waits for the event. */
async function startFake() {
  const processes = fakeProcesses();
  const managed = manage('state', '/nowhere', processes);
  const { service, events } = managed;
  await service.start();
  async function crash(exit: { code?: number; signal?: NodeJS.Signals }): Promise<SupervisorEvent> {
    const before = events.length;
    processes.current().exit(exit);
    await processes.settled();
    expect(events.length).toBe(before + 1);
    return events.at(-1)!;
  }
  return { ...managed, processes, crash };
}

test('a service in a crash loop is restarted with a growing backoff, and the status shows the next start', async () => {
  const { service, clock, processes, crash } = await startFake();
  const { port } = service.status();
  for (const retryInMs of [250, 500, 1000, 2000]) {
    expect(await crash({ signal: 'SIGKILL' })).toMatchObject({ type: 'crashed', retryInMs });
    clock.advance(retryInMs);
    await processes.settled();
    expect(service.status().state).toBe('ready');
  }
  for (const retryInMs of [30, 60, 120].map(seconds)) {
    expect(await crash({ signal: 'SIGKILL' })).toMatchObject({ type: 'crash-loop', retryInMs });
    const nextStartAt = clock.now() + retryInMs;
    expect(service.status()).toMatchObject({ state: 'failed', pid: null, nextStartAt });
    const text = statusText({ services: [service.status()] }, createStyle({ isTTY: false }, {}));
    expect(text).toContain(`signal SIGKILL; restarts at ${new Date(nextStartAt).toISOString()}`);
    clock.advance(retryInMs - 1);
    expect(service.status().state).toBe('failed');
    clock.advance(1);
    await processes.settled();
    expect(service.status()).toMatchObject({ state: 'ready', nextStartAt: null, port });
  }
  // Stable from then on: the next crash is the first one again.
  clock.advance(minutes(1));
  expect(await crash({ signal: 'SIGKILL' })).toMatchObject({ type: 'crashed', retryInMs: 250 });
});

test('a stop cancels the scheduled restart', async () => {
  const { service, clock, crash } = await startFake();
  await crash({ code: 1 });
  expect(service.status().nextStartAt).not.toBeNull();
  await service.stop();
  clock.advance(minutes(10));
  expect(service.status()).toMatchObject({ state: 'stopped', nextStartAt: null, pid: null });
});

test('a process that does not drain in time is killed', async () => {
  const { service, clock, processes, events } = await startFake();
  const stopped = service.stop();
  clock.advance(PlatformConfig.parse({}).state.drainMs + STOP_DEADLINES.forceMs - 1);
  expect(processes.current().wasKilled).toBe(false);
  clock.advance(1);
  await stopped;
  expect(processes.current().wasKilled).toBe(true);
  expect(events.at(-1)).toMatchObject({ type: 'stopped', reason: 'signal SIGKILL', killed: true });
});

test('a start that hangs fails after 30 seconds and counts as a fault for the next process', async () => {
  const processes = fakeProcesses({ hangs: 1 });
  const { service, clock } = manage('state', '/nowhere', processes);
  const failure = expect(service.start()).rejects.toMatchObject({ code: 'UPSTREAM_TIMEOUT' });
  clock.advance(seconds(30));
  await failure;
  expect(service.status()).toMatchObject({ state: 'failed', pid: null });
  await service.start();
  expect(processes.faults()).toEqual([false, true]);
});

test('the next process is informed of a crash, but not of a kill or a reported failure', async () => {
  const { clock, processes, crash } = await startFake();
  for (const exit of [{ signal: 'SIGKILL' }, { signal: 'SIGABRT' }, { code: 1 }, { code: 0 }] as const) {
    const event = await crash(exit);
    clock.advance(event.type === 'crashed' ? event.retryInMs : 0);
    await processes.settled();
  }
  expect(processes.faults()).toEqual([false, false, true, true, false]);
});

test('the next process is informed whether the previous process crashed or was killed', async () => {
  const dataDir = await tempDir();
  await mkdir(join(dataDir, 'run'));
  const { service, clock, events } = manage('workflow', dataDir, { spawn: spawnService, waitHealthy });
  onTestFinished(() => service.stop());
  await service.start();
  /** Kills the process and resolves with the event of its end. */
  async function crash(signal: NodeJS.Signals): Promise<SupervisorEvent> {
    const before = events.length;
    process.kill(service.status().pid!, signal);
    await expect.poll(() => events.length, { timeout: 20_000 }).toBe(before + 1);
    return events.at(-1)!;
  }
  const untilReady = () => expect.poll(() => service.status().state, { timeout: 20_000 }).toBe('ready');
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
