import { describe, expect, test } from 'vitest';
import type { VectorMetadata } from '../../../../src/contracts/index.ts';
import { manualClock } from '../../../../src/kit/time/clock.ts';
import type { VectorStore } from '../../../../src/store/ports/index.ts';
import { threadedVectorStore } from '../../../../src/store/sqlite/index.ts';
import { tempDir } from '../../../support/daemon.ts';

const PLACE = { tenant: 'acme', namespace: 'plugin:x', collection: 'default' };
const MOST = 1000;

/** The real store in its thread, over and over on one folder. */
async function open(dataDir?: string): Promise<{ store: VectorStore; dataDir: string }> {
  const folder = dataDir ?? (await tempDir());
  return { store: threadedVectorStore({ dataDir: folder, clock: manualClock() }), dataDir: folder };
}

const item = (id: string, vector: number[], metadata = {}) => ({ id, vector, metadata });
const idsOf = (hits: Array<{ id: string }>) => hits.map(({ id }) => id);

describe('vector store', () => {
  test('a search finds the nearest vectors by cosine for any lengths, also after a restart', async () => {
    const { store, dataDir } = await open();
    const items = [item('x', [1, 0]), item('y', [0, 5]), item('xy', [3, 3]), item('-x', [-2, 0])];
    expect(await store.upsert(PLACE, items, MOST)).toBe(4);
    await store.close();
    const { store: again } = await open(dataDir);
    const hits = await again.search(PLACE, { vector: [10, 1], limit: 10, filter: {} });
    expect(idsOf(hits)).toEqual(['x', 'xy', 'y', '-x']);
    expect(hits.map(({ score }) => Math.round(score * 1000) / 1000)).toEqual([0.995, 0.774, 0.1, -0.995]);
    expect(idsOf(await again.search(PLACE, { vector: [10, 1], limit: 2, filter: {} }))).toEqual(['x', 'xy']);
    expect(
      idsOf(await again.search(PLACE, { vector: [10, 1], limit: 10, minScore: 0.5, filter: {} })),
    ).toEqual(['x', 'xy']);
    await again.close();
  });

  test('scores of a thousand vectors equal those of a plain computation', async () => {
    const { store } = await open();
    // A fixed sequence that looks random; sines of the index spread well enough.
    const vectors = Array.from({ length: 1000 }, (_, n) =>
      Array.from({ length: 24 }, (_, d) => Math.sin(n * 37 + d * d + 1)),
    );
    for (let at = 0; at < 1000; at += 250)
      await store.upsert(
        PLACE,
        vectors.slice(at, at + 250).map((vector, n) => item(`v${at + n}`, vector)),
        MOST,
      );
    const query = vectors[500]!.map((value, d) => value + Math.cos(d) / 3);
    const cosine = (a: number[], b: number[]) => {
      const dot = (x: number[], y: number[]) => x.reduce((sum, value, d) => sum + value * y[d]!, 0);
      return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
    };
    const expected = vectors
      .map((vector, n) => ({ id: `v${n}`, score: cosine(query, vector) }))
      .sort((a, b) => b.score - a.score)
      .slice(0, 20);
    const hits = await store.search(PLACE, { vector: query, limit: 20, filter: {} });
    for (const [n, { score }] of hits.entries()) expect(score).toBeCloseTo(expected[n]!.score, 4);
    expect(hits[0]!.id).toBe('v500');
    await store.close();
  });

  test('an upsert replaces vector and metadata, and a delete removes them', async () => {
    const { store } = await open();
    await store.upsert(PLACE, [item('a', [1, 0], { v: 1 }), item('b', [0, 1])], MOST);
    await store.upsert(PLACE, [item('a', [0, 1], { v: 2 })], MOST);
    const hits = await store.search(PLACE, { vector: [0, 1], limit: 10, filter: {} });
    expect(hits).toEqual([
      { id: 'a', score: 1, metadata: { v: 2 } },
      { id: 'b', score: 1, metadata: {} },
    ]);
    expect(await store.delete(PLACE, ['a', 'a', 'absent'])).toBe(1);
    expect(idsOf(await store.search(PLACE, { vector: [0, 1], limit: 10, filter: {} }))).toEqual(['b']);
    await store.close();
  });

  test('a filter compares values and types of metadata before the nearest vectors are selected', async () => {
    const { store } = await open();
    const near = Array.from({ length: 50 }, (_, n) => item(`near${n}`, [1, n / 1000], { kind: 'near' }));
    await store.upsert(
      PLACE,
      [...near, item('far', [0, 1], { kind: "it's", n: 1, yes: true, none: null })],
      MOST,
    );
    const find = async (filter: VectorMetadata) =>
      idsOf(await store.search(PLACE, { vector: [1, 0], limit: 3, filter }));
    const met: VectorMetadata[] = [
      { kind: "it's" },
      { n: 1 },
      { yes: true },
      { none: null },
      { kind: "it's", n: 1 },
    ];
    for (const filter of met) expect(await find(filter)).toEqual(['far']);
    const unmet: VectorMetadata[] = [
      { n: '1' },
      { yes: 1 },
      { n: true },
      { kind: 'other' },
      { absent: null },
    ];
    for (const filter of unmet) expect(await find(filter)).toEqual([]);
    await store.close();
  });

  test('tenants, plugins and collections are separate, also in their dimensions', async () => {
    const { store } = await open();
    const places = [
      PLACE,
      { ...PLACE, tenant: 'other' },
      { ...PLACE, namespace: 'plugin:y' },
      { ...PLACE, collection: 'two' },
    ];
    for (const [n, place] of places.entries())
      await store.upsert(
        place,
        [
          item(
            'same',
            Array.from({ length: n + 2 }, () => n + 1),
            { n },
          ),
        ],
        MOST,
      );
    for (const [n, place] of places.entries()) {
      const vector = Array.from({ length: n + 2 }, () => 1);
      expect(await store.search(place, { vector, limit: 10, filter: {} })).toEqual([
        { id: 'same', score: 1, metadata: { n } },
      ]);
    }
    expect(await store.delete(places[1]!, ['same'])).toBe(1);
    expect(await store.search(PLACE, { vector: [1, 1], limit: 1, filter: {} })).toHaveLength(1);
    await store.close();
  });

  test('a vector with other dimensions rejects its whole batch', async () => {
    const { store } = await open();
    await store.upsert(PLACE, [item('a', [1, 0])], MOST);
    const refused = { code: 'VALIDATION_ERROR' };
    await expect(store.upsert(PLACE, [item('b', [1, 0, 0])], MOST)).rejects.toMatchObject({
      ...refused,
      message: expect.stringContaining('holds vectors of 2 dimensions, and this one has 3'),
    });
    await expect(store.upsert(PLACE, [item('b', [1, 0]), item('c', [1])], MOST)).rejects.toMatchObject(
      refused,
    );
    await expect(store.upsert(PLACE, [item('b', [0, 0])], MOST)).rejects.toMatchObject(refused);
    await expect(store.upsert(PLACE, [item('b', [1e39, 0])], MOST)).rejects.toMatchObject(refused);
    await expect(store.search(PLACE, { vector: [1], limit: 1, filter: {} })).rejects.toMatchObject(refused);
    expect(idsOf(await store.search(PLACE, { vector: [1, 0], limit: 10, filter: {} }))).toEqual(['a']);
    await store.close();
  });

  test('an empty collection has no dimensions', async () => {
    const { store } = await open();
    await store.upsert(PLACE, [item('a', [1, 0])], MOST);
    await store.delete(PLACE, ['a']);
    await store.upsert(PLACE, [item('a', [1, 0, 0])], MOST);
    expect(idsOf(await store.search(PLACE, { vector: [1, 0, 0], limit: 1, filter: {} }))).toEqual(['a']);
    await store.close();
  });

  test('the quota counts all collections of a plugin and tenant, without replaced vectors', async () => {
    const { store } = await open();
    await store.upsert(PLACE, [item('a', [1]), item('b', [2])], 3);
    await store.upsert({ ...PLACE, collection: 'two' }, [item('c', [1])], 3);
    await store.upsert(PLACE, [item('a', [3]), item('b', [4])], 3);
    await expect(store.upsert(PLACE, [item('a', [5]), item('d', [1])], 3)).rejects.toMatchObject({
      code: 'QUOTA_EXCEEDED',
    });
    expect(idsOf(await store.search(PLACE, { vector: [1], limit: 10, filter: {} }))).toEqual(['a', 'b']);
    await store.upsert({ ...PLACE, tenant: 'other' }, [item('d', [1])], 3);
    await store.close();
  });
});
