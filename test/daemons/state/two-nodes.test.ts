import { readdir } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import {
  deleteObject,
  deleteVectors,
  getState,
  incrementState,
  listObjects,
  listState,
  putState,
  readObject,
  searchVectors,
  upsertVectors,
  writeObject,
} from '../../../src/contracts/index.ts';
import { state } from '../../../src/daemons/state/index.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { hours, minutes } from '../../../src/kit/time/duration.ts';
import { startTestDaemon } from '../../support/daemon.ts';
import { migratedPostgres } from '../../support/migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';

const entry = (key: string) => ({ params: { namespace: 'plugin:x:state', key } });
const object = (key: string) => ({ params: { namespace: 'plugin:x', key } });
const VECTORS = { params: { namespace: 'plugin:x', collection: 'docs' } };
const base64 = (text: string) => Buffer.from(text).toString('base64');

/** Two state services of two nodes, whose clocks differ by two hours. */
async function startNodes(config: object = {}) {
  const store = { url: await migratedPostgres() };
  return Promise.all(
    [-hours(1), hours(1)].map((skew) =>
      startTestDaemon(state, { config: { ...config, store }, clock: manualClock(Date.now() + skew) }),
    ),
  );
}

/** Calls `make` with 0 … count-1 at once, and returns the number of calls that succeeded. */
async function countSucceeded(count: number, make: (index: number) => Promise<unknown>): Promise<number> {
  const settled = await Promise.allSettled(Array.from({ length: count }, (_, index) => make(index)));
  for (const result of settled)
    if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'QUOTA_EXCEEDED' });
  return settled.filter(({ status }) => status === 'fulfilled').length;
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'two state services' : POSTGRES_MISSING, () => {
  test('what one node has acknowledged, the other has: entries, objects and vectors', async () => {
    const [one, two] = await startNodes();
    await one!.call(putState, { ...entry('k'), body: { value: { n: 1 } } });
    expect((await two!.call(getState, entry('k'))).value).toEqual({ n: 1 });

    await one!.call(writeObject, { ...object('a.txt'), body: { data: base64('first') } });
    await two!.call(writeObject, { ...object('a.txt'), body: { data: base64('second') } });
    expect((await one!.call(readObject, object('a.txt'))).data).toBe(base64('second'));
    expect(await one!.call(deleteObject, object('a.txt'))).toEqual({ deleted: true });
    await expect(two!.call(readObject, object('a.txt'))).rejects.toMatchObject({ code: 'NOT_FOUND' });

    const find = async (node: typeof one) =>
      (await node!.call(searchVectors, { ...VECTORS, body: { vector: [1, 0] } })).matches.map(({ id }) => id);
    await one!.call(upsertVectors, { ...VECTORS, body: { items: [{ id: 'x', vector: [1, 0] }] } });
    await two!.call(upsertVectors, { ...VECTORS, body: { items: [{ id: 'y', vector: [0, 1] }] } });
    expect([await find(one), await find(two)]).toEqual([
      ['x', 'y'],
      ['x', 'y'],
    ]);
    await two!.call(deleteVectors, { ...VECTORS, body: { ids: ['x'] } });
    expect([await find(one), await find(two)]).toEqual([['y'], ['y']]);
    for (const { dataDir } of [one!, two!]) expect(await readdir(dataDir)).not.toContain('storage');
  });

  test('quotas and counters are exact over both nodes', async () => {
    const nodes = await startNodes({
      state: { quotas: { entries: { maxKeys: 10 } } },
      adapters: { storage: { type: 'files', quotaBytes: 100 }, vectorStore: { maxVectors: 15 } },
    });
    const node = (n: number) => nodes[n % 2]!;
    const put = (n: number) => node(n).call(putState, { ...entry(`k${n}`), body: { value: n } });
    expect(await countSucceeded(30, put)).toBe(10);
    for (const { call } of nodes)
      expect(
        (await call(listState, { params: { namespace: 'plugin:x:state' }, query: {} })).items,
      ).toHaveLength(10);
    const write = (n: number) =>
      node(n).call(writeObject, { ...object(`o${n}`), body: { data: base64('x'.repeat(9)) } });
    expect(await countSucceeded(30, write)).toBe(11);
    const listed = await node(0).call(listObjects, { params: { namespace: 'plugin:x' }, query: {} });
    expect(listed.items).toHaveLength(11);
    const upsert = (n: number) =>
      node(n).call(upsertVectors, { ...VECTORS, body: { items: [{ id: `v${n}`, vector: [1, n] }] } });
    expect(await countSucceeded(30, upsert)).toBe(15);

    const counter = { params: { namespace: 'plugin:x:cache', key: 'count' } };
    const values = await Promise.all(
      Array.from(
        { length: 50 },
        async (_, n) => (await node(n).call(incrementState, { ...counter, body: {} })).value,
      ),
    );
    expect(values.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, n) => n + 1));
  });

  test('one node holds a lease at a time, although the clocks of the nodes differ', async () => {
    const nodes = await startNodes();
    const take = async () => {
      const body = { value: 'held', ifAbsent: true, ttlMs: 700 };
      const taken = await Promise.all(
        Array.from({ length: 10 }, (_, n) => nodes[n % 2]!.call(putState, { ...entry('lease'), body })),
      );
      return taken.filter(({ written }) => written).length;
    };
    expect(await take()).toBe(1);
    for (const { call } of nodes) expect((await call(getState, entry('lease'))).value).toBe('held');
    await expect.poll(take, { timeout: 5000 }).toBe(1);
  });

  test('both nodes sweep at once: expired entries go, others stay, and the quota counts what is left', async () => {
    const nodes = await startNodes({ state: { quotas: { entries: { maxKeys: 400 } } } });
    const put = (n: number) =>
      nodes[n % 2]!.call(putState, { ...entry(`k${n}`), body: { value: n, ...(n % 4 ? { ttlMs: 1 } : {}) } });
    for (let n = 0; n < 400; n += 50) await Promise.all(Array.from({ length: 50 }, (_, m) => put(n + m)));
    for (let minute = 0; minute < 3; minute++) for (const { clock } of nodes) clock.advance(minutes(1));
    const { items } = await nodes[0]!.call(listState, {
      params: { namespace: 'plugin:x:state' },
      query: { limit: 1000 },
    });
    expect(items).toHaveLength(100);
    expect(
      await countSucceeded(320, (n) =>
        nodes[n % 2]!.call(putState, { ...entry(`new${n}`), body: { value: n } }),
      ),
    ).toBe(300);
    for (const { logs } of nodes)
      expect(logs.lines.filter(({ event }) => event === 'state.sweep_failed')).toEqual([]);
  });
});
