import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import Sqlite from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { signalStep, waitStep } from '../../../src/daemons/workflow/domain/steps/kinds/builtins.ts';
import { PlatformError } from '../../../src/kit/errors/errors.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { tempDir } from '../../support/daemon.ts';
import { type BareEngine, openEngine, workStep } from './support/engine.ts';
import { cel } from './support/workflow.ts';

const PROGRAM = fileURLToPath(new URL('./programs/engine.ts', import.meta.url));

function startEngine(...args: string[]): { child: ChildProcess; lines: string[] } {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  onTestFinished(() => void child.kill('SIGKILL'));
  return { child, lines };
}

/** A process that stands still within a transaction keeps everybody out of the file: that is not what is tested here. */
async function stopBetweenWrites(child: ChildProcess, dataDir: string): Promise<void> {
  const probe = new Sqlite(join(dataDir, 'workflow.db'), { timeout: 0 });
  try {
    for (;;) {
      child.kill('SIGSTOP');
      // The signal is on its way for a moment.
      await sleep(20);
      try {
        probe.exec('begin immediate; rollback');
        return;
      } catch {
        child.kill('SIGCONT');
        await sleep(5);
      }
    }
  } finally {
    probe.close();
  }
}

test('an engine stalled beyond its lease is fenced: another one takes over its run, and it writes no more', async () => {
  const dataDir = await tempDir();
  const first = startEngine(dataDir, '600', '12');
  await expect.poll(() => first.lines.length, { timeout: 10_000 }).toBeGreaterThan(3);
  const id = first.lines.find((line) => line.startsWith('run_'))!;
  await stopBetweenWrites(first.child, dataDir);
  const ran = first.lines.filter((line) => line.startsWith('step')).length;
  await sleep(700);
  const second = startEngine(dataDir, '600');
  const it = await openEngine({ dataDir, kinds: [] });
  onTestFinished(() => it.close());
  await expect
    .poll(async () => (await it.store.runs.find(null, id))?.status, { timeout: 10_000 })
    .toBe('succeeded');
  first.child.kill('SIGCONT');
  await expect.poll(() => first.lines.at(-1), { timeout: 5000 }).toBe('fenced');
  await sleep(200);
  // Its pipe may have held one line more when it was stopped.
  expect(first.lines.filter((line) => line.startsWith('step')).length).toBeLessThanOrEqual(ran + 1);
  const run = await it.store.runs.find(null, id);
  expect(run).toMatchObject({ status: 'succeeded', resumeCount: 1 });
  const seq = run!.seq;
  const attempts = await it.store.runs.attempts(seq);
  const succeeded = attempts.filter(({ status }) => status === 'succeeded');
  expect(succeeded).toHaveLength(12);
  expect(second.lines.filter((line) => line.startsWith('step')).length).toBe(
    12 - succeeded.filter(({ attempt, index }) => attempt === 1 && index < ran).length,
  );
}, 40_000);

test('many queued runs do not fill memory at boot, and all tenants make progress', async () => {
  const dataDir = await tempDir();
  const writer = await openEngine({ dataDir, kinds: [] });
  const many = Number(process.env.SVC_TEST_QUEUED ?? 20_000);
  // Never started: what it offers stays in the store.
  for (let i = 0; i < many; i += 500)
    await Promise.all(
      Array.from({ length: 500 }, (_, n) =>
        writer.begin([{ uses: 'set' }], n % 100 === 0 ? `t${n / 100}` : 'big'),
      ),
    );
  await writer.store.close();
  const done = new Set<string>();
  const gate = Promise.withResolvers<void>();
  const reader = await openEngine({ dataDir, runs: 20, kinds: [workStep('gate', () => gate.promise)] });
  const { queue } = reader.store;
  const ready = queue.ready.bind(queue);
  let read = 0;
  queue.ready = async (tenantId, limit) => {
    const runs = await ready(tenantId, limit);
    read += runs.length;
    return runs;
  };
  await reader.engine.start();
  await expect.poll(() => read).toBeGreaterThan(0);
  expect(read).toBeLessThan(many / 10);
  // The small tenants' runs are through long before the large one's.
  await expect
    .poll(
      async () => {
        for (let t = 0; t < 5; t++) {
          const { runs } = await reader.store.runs.list(`t${t}`, {
            kind: 'workflow',
            status: ['succeeded'],
            limit: 1000,
          });
          if (runs.length === many / 500) done.add(`t${t}`);
        }
        return done.size;
      },
      { timeout: 20_000 },
    )
    .toBe(5);
  const left = await reader.store.queue.ready('big', 1_000_000);
  expect(left.length).toBeGreaterThan(0);
  gate.resolve();
  await reader.close();
}, 60_000);

test('queued runs that fill a page of the store, and have places, are taken up at boot', async () => {
  const dataDir = await tempDir();
  const writer = await openEngine({ dataDir, kinds: [] });
  const ids = await Promise.all(Array.from({ length: 600 }, () => writer.begin([{ uses: 'set' }])));
  await writer.store.close();
  const reader = await openEngine({ dataDir, kinds: [] });
  onTestFinished(() => reader.close());
  await reader.engine.start();
  const last = async () => (await reader.store.runs.find(null, ids.at(-1)!))?.status;
  await expect.poll(last).toBe('succeeded');
});

test('disk errors are retried: pending writes are stored once there is room again', async () => {
  const dataDir = await tempDir();
  const it = await openEngine({ dataDir, kinds: [workStep('work', async () => {})] });
  onTestFinished(() => it.close());
  await it.engine.start();
  const write = it.store.runs.write.bind(it.store.runs);
  let broken = true;
  let refused = 0;
  it.store.runs.write = async (change) => {
    if (!broken) return write(change);
    refused++;
    throw new Error('SQLITE_FULL');
  };
  const id = await it.begin([{ uses: 'work' }, { uses: 'work' }]);
  await expect.poll(() => refused).toBeGreaterThan(1);
  expect((await it.store.runs.find(null, id))?.status).toBe('queued');
  broken = false;
  await expect
    .poll(async () => (await it.store.runs.find(null, id))?.status, { timeout: 5000 })
    .toBe('succeeded');
});

test('a definition that is temporarily unreadable is read again; a deleted one fails its run', async () => {
  const dataDir = await tempDir();
  const before = await openEngine({ dataDir, kinds: [] });
  const id = await before.begin([{ uses: 'set' }]);
  const gone = await before.beginDefinition({ id: 'gone', jobs: { a: { steps: [{ uses: 'set' }] } } });
  await before.close();
  let reads = 0;
  const it = await openEngine({
    dataDir,
    kinds: [],
    async find(hash, store) {
      const found = await store.definition(hash);
      if (found?.workflowId === 'gone') return undefined;
      if (++reads === 1) throw new PlatformError('STORE_ERROR', 'The file stayed locked.');
      return found;
    },
  });
  onTestFinished(() => it.close());
  await it.engine.start();
  const run = async (runId: string) => (await it.store.runs.find(null, runId))!;
  await expect.poll(async () => (await run(id)).status, { timeout: 5000 }).toBe('succeeded');
  expect(await run(gone)).toMatchObject({
    status: 'failed',
    error: expect.stringContaining('WORKFLOW_NOT_FOUND'),
  });
});

test('a signal received while its run is being read is kept and used once', async () => {
  const dataDir = await tempDir();
  const gate = Promise.withResolvers<void>();
  const kinds = [signalStep, waitStep, workStep('work', () => gate.promise)];
  const before = await openEngine({ dataDir, kinds });
  await before.engine.start();
  const statusIn = async (it: BareEngine, id: string) => (await it.store.runs.find(null, id))!.status;
  const signal = { uses: 'signal', with: { name: 'go' } };
  const id = await before.beginDefinition({
    id: 'two',
    jobs: {
      asks: { steps: [signal, signal] },
      // What keeps the run in memory once it is read.
      works: { steps: [{ uses: 'wait', with: { ms: 300 } }, { uses: 'work' }] },
    },
  });
  await expect.poll(() => statusIn(before, id)).toBe('waiting');
  await before.close();

  const reading = Promise.withResolvers<void>();
  const mayRead = Promise.withResolvers<void>();
  const it = await openEngine({
    dataDir,
    kinds,
    async find(hash, store) {
      reading.resolve();
      await mayRead.promise;
      return store.definition(hash);
    },
  });
  onTestFinished(() => it.close());
  await it.engine.start();
  await reading.promise;
  const run = (await it.store.runs.find(null, id))!;
  const deliver = (payload: string) =>
    it.engine.deliver(run, { kind: 'signal', name: 'go', payload, at: 1 }, { once: false });
  const delivered = deliver('1');
  // It is on disk, and waits for the run to be in memory.
  await expect.poll(async () => (await it.store.runs.load(run.seq))!.inbox.length).toBe(1);
  mayRead.resolve();
  await delivered;
  const outputs = async () => (await it.store.runs.load(run.seq))!.steps.map(({ output }) => output);
  await expect.poll(async () => (await outputs())[0]).toContain('"payload":1');
  expect((await outputs())[1]).toBeNull();
  await deliver('2');
  await expect.poll(async () => (await outputs())[1]).toContain('"payload":2');
  gate.resolve();
  await expect.poll(() => statusIn(it, id)).toBe('succeeded');
});

test('an effect that depends on an output starts only when that output is durable', async () => {
  const dataDir = await tempDir();
  const clock = manualClock();
  const keys: string[] = [];
  let ids = 0;
  const kinds = [
    { ...workStep('reserve', async () => {}), run: async () => ({ output: { id: ++ids } }) },
    {
      ...workStep('pay', async () => {}, false),
      run: async ({ idempotencyKey }: { idempotencyKey: string | null }) => {
        keys.push(idempotencyKey!);
        return { output: null };
      },
    },
  ];
  const lost = Promise.withResolvers<void>();
  const first = await openEngine({
    dataDir,
    clock,
    exclusive: true,
    kinds,
    // The process dies while the output of the first step is on its way to the disk.
    wrap: (store) => ({
      ...store,
      runs: {
        ...store.runs,
        write(change) {
          if (!change.steps.some(({ output }) => output !== null)) return store.runs.write(change);
          lost.resolve();
          return new Promise(() => {});
        },
      },
    }),
  });
  await first.engine.start();
  const id = await first.begin([
    { id: 'r', uses: 'reserve' },
    { id: 'pay', uses: 'pay', idempotencyKey: cel('steps.r.output.id') },
  ]);
  await lost.promise;
  const second = await openEngine({ dataDir, clock, exclusive: true, kinds });
  onTestFinished(async () => {
    await second.close();
    await first.close();
  });
  await second.engine.start();
  await expect.poll(async () => (await second.store.runs.find(null, id))?.status).toBe('succeeded');
  expect(keys).toEqual(['2']);
});

test('a run is cancelled at once while a thread evaluates one of its expressions', async () => {
  const asked = Promise.withResolvers<void>();
  const it = await openEngine({
    dataDir: await tempDir(),
    kinds: [],
    threads: {
      run() {
        asked.resolve();
        return new Promise(() => {});
      },
      close: async () => {},
    },
  });
  onTestFinished(() => it.close());
  await it.engine.start();
  const id = await it.begin([{ uses: 'set', if: '"x".matches("x")' }, { uses: 'set' }]);
  await asked.promise;
  await it.engine.cancel((await it.store.runs.find(null, id))!);
  await expect.poll(async () => (await it.store.runs.find(null, id))?.status).toBe('cancelled');
});
