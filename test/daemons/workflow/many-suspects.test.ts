import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { type ManualClock, manualClock } from '../../../src/kit/time/clock.ts';
import { seconds } from '../../../src/kit/time/duration.ts';
import type { RunQueue } from '../../../src/store/ports/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { type BareEngine, openEngine } from './support/engine.ts';

const SUSPECTS = 600;

interface Started {
  it: BareEngine;
  clock: ManualClock;
  suspects: string[];
  healthy: string;
  /** Ids of the runs whose step began, in order, and how to end the step of one. */
  begun: string[];
  end(id: string): void;
  /** How often the store was asked what to take up. */
  asked(): number;
  statusOf(id: string): Promise<string | undefined>;
}

/**
 * An engine that finds so many runs with two crashes, each of one step that waits to be ended, and one run without any behind
 * them. `rows` is what else is set in the rows of all of them.
 */
async function startWithSuspects(rows = ''): Promise<Started> {
  const dataDir = await tempDir();
  const begun: string[] = [];
  const open = new Map<string, () => void>();
  const clock = manualClock();
  const hold = {
    name: 'hold',
    mode: 'effect' as const,
    takesSlot: true,
    defaultTimeoutMs: seconds(1e6),
    check: () => [],
    isIdempotent: () => true,
    run({ run: { id } }: { run: { id: string } }) {
      begun.push(id);
      return new Promise<{ output: null }>((resolve) => open.set(id, () => resolve({ output: null })));
    },
  };
  const writer = await openEngine({ dataDir, clock, kinds: [hold] });
  const ids: string[] = [];
  for (let n = 0; n <= SUSPECTS; n++) ids.push(await writer.begin([{ uses: 'hold' }]));
  await writer.store.close();
  const healthy = ids.at(-1)!;
  const file = new Sqlite(join(dataDir, 'workflow.db'));
  file.prepare('update run set crashes = 2 where id <> ?').run(healthy);
  if (rows !== '') file.prepare(`update run set ${rows}`).run();
  file.close();
  const counts = { asked: 0 };
  const counted = (queue: RunQueue): RunQueue => {
    const count = <Args extends unknown[], Found>(ask: (...args: Args) => Found) => {
      return (...args: Args): Found => {
        counts.asked++;
        return ask(...args);
      };
    };
    const { ready, due, nextSuspect } = queue;
    return { ...queue, ready: count(ready), due: count(due), nextSuspect: count(nextSuspect) };
  };
  const it = await openEngine({
    dataDir,
    clock,
    exclusive: true,
    kinds: [hold],
    wrap: (store) => ({ ...store, queue: counted(store.queue) }),
  });
  onTestFinished(() => it.close());
  await it.engine.start();
  return {
    it,
    clock,
    suspects: ids.slice(0, -1),
    healthy,
    begun,
    end: (id) => open.get(id)!(),
    asked: () => counts.asked,
    statusOf: async (id) => (await it.store.runs.find(null, id))?.status,
  };
}

test.each([
  ['queued', ''],
  ['due', "status = 'waiting', ready = 0, started_at = created_at, wake_at = created_at + seq"],
])(
  'six hundred suspects that are %s hold up no other run, and are taken up one by one without polling',
  async (_, rows) => {
    const { clock, suspects, healthy, begun, end, asked, statusOf } = await startWithSuspects(rows);
    // Those that are due are so by the clock.
    clock.advance(SUSPECTS * 2);
    await expect.poll(() => begun.length).toBe(2);
    expect(begun).toContain(healthy);
    end(healthy);
    await expect.poll(() => statusOf(healthy)).toBe('succeeded');
    const [first] = begun.filter((id) => id !== healthy);
    expect(suspects).toContain(first);

    const before = asked();
    const looks = 10;
    for (let n = 0; n < looks * 200; n++) {
      clock.advance(5);
      await new Promise((resolve) => setImmediate(resolve));
    }
    // A look each second, each with a question or three; a look every 5 ms would be two thousand.
    expect(asked() - before).toBeLessThanOrEqual(looks * 4);
    expect(begun).toHaveLength(2);

    for (let count = 2; count < 6; count++) {
      end(begun.filter((id) => id !== healthy).at(-1)!);
      await expect.poll(() => begun.length).toBe(count + 1);
    }
    expect(new Set(begun).size).toBe(6);
  },
  60_000,
);

test('a suspect that waits lets the next one begin, and goes behind those that are due', async () => {
  const dataDir = await tempDir();
  const clock = manualClock();
  const begun: string[] = [];
  const failing = {
    name: 'failing',
    mode: 'effect' as const,
    takesSlot: true,
    defaultTimeoutMs: seconds(1e6),
    check: () => [],
    isIdempotent: () => true,
    async run({ run: { id } }: { run: { id: string } }): Promise<{ output: null }> {
      begun.push(id);
      throw new Error('not yet');
    },
  };
  const writer = await openEngine({ dataDir, clock, kinds: [failing] });
  const retry = { maxAttempts: 100, initialMs: 1000, maxMs: 1000, jitter: 'none' };
  const ids: string[] = [];
  for (let n = 0; n < 3; n++) ids.push(await writer.begin([{ uses: 'failing', retry }]));
  await writer.store.close();
  const file = new Sqlite(join(dataDir, 'workflow.db'));
  file.prepare('update run set crashes = 2').run();
  file.close();
  const it = await openEngine({ dataDir, clock, exclusive: true, kinds: [failing] });
  onTestFinished(() => it.close());
  await it.engine.start();
  await expect.poll(() => begun).toEqual(ids);
  clock.advance(seconds(2));
  await expect.poll(() => begun).toEqual([...ids, ...ids]);
}, 30_000);
