import { describe, expect, test } from 'vitest';
import type { VectorMetadata } from '../../../src/contracts/index.ts';
import type { VectorStore } from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh, times } from './driver.ts';

const PLACE = { tenant: 'acme', namespace: 'plugin:x', collection: 'default' };
const MOST = 10_000;

const item = (id: string, vector: number[], metadata = {}) => ({ id, vector, metadata });
const idsOf = (hits: Array<{ id: string }>) => hits.map(({ id }) => id);

/** What every driver of VectorStore does. */
export function describeVectors(name: string, open: OpenDriver<VectorStore>): void {
  describe(`vector store: ${name}`, () => {
    test('a search finds the nearest vectors by cosine for any lengths, also after a restart', async () => {
      const { port, reopen } = await openFresh(open);
      const items = [item('x', [1, 0]), item('y', [0, 5]), item('xy', [3, 3]), item('-x', [-2, 0])];
      expect(await port.upsert(PLACE, items, MOST)).toBe(4);
      const again = await reopen();
      const hits = await again.search(PLACE, { vector: [10, 1], limit: 10, filter: {} });
      expect(idsOf(hits)).toEqual(['x', 'xy', 'y', '-x']);
      expect(hits.map(({ score }) => Math.round(score * 1000) / 1000)).toEqual([0.995, 0.774, 0.1, -0.995]);
      expect(idsOf(await again.search(PLACE, { vector: [10, 1], limit: 2, filter: {} }))).toEqual([
        'x',
        'xy',
      ]);
      expect(
        idsOf(await again.search(PLACE, { vector: [10, 1], limit: 10, minScore: 0.5, filter: {} })),
      ).toEqual(['x', 'xy']);
    });

    test('scores of a thousand vectors equal those of a plain computation', async () => {
      const { port } = await openFresh(open);
      // A fixed sequence that looks random; sines of the index spread well enough.
      const vectors = Array.from({ length: 1000 }, (_, n) =>
        Array.from({ length: 24 }, (_, d) => Math.sin(n * 37 + d * d + 1)),
      );
      for (let at = 0; at < 1000; at += 250)
        await port.upsert(
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
      const hits = await port.search(PLACE, { vector: query, limit: 20, filter: {} });
      for (const [n, { score }] of hits.entries()) expect(score).toBeCloseTo(expected[n]!.score, 4);
      expect(hits[0]!.id).toBe('v500');
    });

    test('an upsert replaces vector and metadata, and a delete removes them', async () => {
      const { port } = await openFresh(open);
      await port.upsert(PLACE, [item('a', [1, 0], { v: 1 }), item('b', [0, 1])], MOST);
      await port.upsert(PLACE, [item('a', [0, 1], { v: 2 })], MOST);
      const hits = await port.search(PLACE, { vector: [0, 1], limit: 10, filter: {} });
      expect(hits).toEqual([
        { id: 'a', score: 1, metadata: { v: 2 } },
        { id: 'b', score: 1, metadata: {} },
      ]);
      expect(await port.delete(PLACE, ['a', 'a', 'absent'])).toBe(1);
      expect(idsOf(await port.search(PLACE, { vector: [0, 1], limit: 10, filter: {} }))).toEqual(['b']);
    });

    test('a filter compares values and types of metadata before the nearest vectors are selected', async () => {
      const { port } = await openFresh(open);
      const near = Array.from({ length: 50 }, (_, n) => item(`near${n}`, [1, n / 1000], { kind: 'near' }));
      await port.upsert(
        PLACE,
        [...near, item('far', [0, 1], { kind: "it's", n: 1, yes: true, none: null })],
        MOST,
      );
      const find = async (filter: VectorMetadata) =>
        idsOf(await port.search(PLACE, { vector: [1, 0], limit: 3, filter }));
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
    });

    test('tenants, plugins and collections are separate, also in their dimensions', async () => {
      const { port } = await openFresh(open);
      const places = [
        PLACE,
        { ...PLACE, tenant: 'other' },
        { ...PLACE, namespace: 'plugin:y' },
        { ...PLACE, collection: 'two' },
      ];
      for (const [n, place] of places.entries())
        await port.upsert(
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
        expect(await port.search(place, { vector, limit: 10, filter: {} })).toEqual([
          { id: 'same', score: 1, metadata: { n } },
        ]);
      }
      expect(await port.delete(places[1]!, ['same'])).toBe(1);
      expect(await port.search(PLACE, { vector: [1, 1], limit: 1, filter: {} })).toHaveLength(1);
    });

    test('a vector with other dimensions rejects its whole batch', async () => {
      const { port } = await openFresh(open);
      await port.upsert(PLACE, [item('a', [1, 0])], MOST);
      const refused = { code: 'VALIDATION_ERROR' };
      await expect(port.upsert(PLACE, [item('b', [1, 0, 0])], MOST)).rejects.toMatchObject({
        ...refused,
        message: expect.stringContaining('holds vectors of 2 dimensions, and this one has 3'),
      });
      await expect(port.upsert(PLACE, [item('b', [1, 0]), item('c', [1])], MOST)).rejects.toMatchObject(
        refused,
      );
      await expect(port.upsert(PLACE, [item('b', [0, 0])], MOST)).rejects.toMatchObject(refused);
      await expect(port.upsert(PLACE, [item('b', [1e39, 0])], MOST)).rejects.toMatchObject(refused);
      await expect(port.search(PLACE, { vector: [1], limit: 1, filter: {} })).rejects.toMatchObject(refused);
      expect(idsOf(await port.search(PLACE, { vector: [1, 0], limit: 10, filter: {} }))).toEqual(['a']);
    });

    test('an empty collection has no dimensions', async () => {
      const { port } = await openFresh(open);
      await port.upsert(PLACE, [item('a', [1, 0])], MOST);
      await port.delete(PLACE, ['a']);
      await port.upsert(PLACE, [item('a', [1, 0, 0])], MOST);
      expect(idsOf(await port.search(PLACE, { vector: [1, 0, 0], limit: 1, filter: {} }))).toEqual(['a']);
    });

    test('the quota counts all collections of a plugin and tenant, without replaced vectors', async () => {
      const { port } = await openFresh(open);
      await port.upsert(PLACE, [item('a', [1]), item('b', [2])], 3);
      await port.upsert({ ...PLACE, collection: 'two' }, [item('c', [1])], 3);
      await port.upsert(PLACE, [item('a', [3]), item('b', [4])], 3);
      await expect(port.upsert(PLACE, [item('a', [5]), item('d', [1])], 3)).rejects.toMatchObject({
        code: 'QUOTA_EXCEEDED',
      });
      expect(idsOf(await port.search(PLACE, { vector: [1], limit: 10, filter: {} }))).toEqual(['a', 'b']);
      await port.upsert({ ...PLACE, tenant: 'other' }, [item('d', [1])], 3);
    });

    test('two services find what either has acknowledged, and nothing that either has deleted', async () => {
      const { port, second } = await openFresh(open);
      const both = [port, await second()];
      const find = (node: number) =>
        both[node]!.search(PLACE, { vector: [1, 0], limit: 1000, filter: {} }).then(idsOf);
      for (let n = 0; n < 20; n++) {
        const writer = n % 2;
        await both[writer]!.upsert(PLACE, [item(`k${n}`, [1, n]), item('same', [1, -n])], MOST);
        if (n >= 5) await both[1 - writer]!.delete(PLACE, [`k${n - 5}`]);
        const expected = times(Math.min(n + 1, 5), async (m) => `k${n - m}`);
        for (const node of [0, 1])
          expect((await find(node)).toSorted()).toEqual([...(await expected), 'same'].toSorted());
      }
    });

    test('concurrent writers of two services exceed no quota together, and lose nothing', async () => {
      const { port, second } = await openFresh(open);
      const both = [port, await second()];
      const written = await times(40, (n) =>
        both[n % 2]!.upsert(
          { ...PLACE, collection: `c${n % 3}` },
          [item(`a${n}`, [1, n]), item(`b${n}`, [n, 1])],
          50,
        ).then(
          () => [`a${n}`, `b${n}`],
          (error: { code: string }) => {
            expect(error.code).toBe('QUOTA_EXCEEDED');
            return [];
          },
        ),
      );
      expect(written.flat()).toHaveLength(50);
      for (const store of both) {
        const found = await times(3, (n) =>
          store.search({ ...PLACE, collection: `c${n}` }, { vector: [1, 1], limit: 100, filter: {} }),
        );
        expect(idsOf(found.flat()).toSorted()).toEqual(written.flat().toSorted());
      }
    });

    test('a search sees a batch whole or not at all, while another service writes', async () => {
      const { port, second } = await openFresh(open);
      const other = await second();
      const batch = (version: number) =>
        Array.from({ length: 500 }, (_, n) => item(`k${n}`, [1, n], { version }));
      await port.upsert(PLACE, batch(0), MOST);
      let isOver = false;
      const writing = (async () => {
        for (let version = 1; version <= 5; version++) await port.upsert(PLACE, batch(version), MOST);
        isOver = true;
      })();
      for (let seen = 0; !isOver; ) {
        const hits = await other.search(PLACE, { vector: [1, 0], limit: 1000, filter: {} });
        const versions = new Set(hits.map(({ metadata }) => metadata.version as number));
        expect([hits.length, versions.size]).toEqual([500, 1]);
        const [version] = versions;
        expect(version).toBeGreaterThanOrEqual(seen);
        seen = version!;
      }
      await writing;
    });

    test('a service that was idle during thousands of deletes still finds what is left', async () => {
      const { port, second } = await openFresh(open);
      const other = await second();
      const all = Array.from({ length: 2500 }, (_, n) => item(`k${n}`, [1, n]));
      for (let at = 0; at < 2500; at += 500) await port.upsert(PLACE, all.slice(at, at + 500), MOST);
      const find = (store: VectorStore) =>
        store.search(PLACE, { vector: [1, 0], limit: 1000, filter: {} }).then(idsOf);
      expect(await find(other)).toHaveLength(1000);
      for (let at = 0; at < 2490; at += 830) await port.delete(PLACE, idsOf(all.slice(at, at + 830)));
      const left = idsOf(all.slice(2490));
      expect([await find(port), await find(other)]).toEqual([left, left]);
      await other.delete(PLACE, left);
      await other.upsert(PLACE, [item('new', [1, 2, 3])], MOST);
      await expect(find(port)).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
      const hits = await port.search(PLACE, { vector: [1, 2, 3], limit: 10, filter: {} });
      expect(idsOf(hits)).toEqual(['new']);
    });

    test('a batch may repeat an id, and the last vector applies', async () => {
      const { port } = await openFresh(open);
      const batch = [item('a', [1, 0], { n: 1 }), item('b', [0, 1]), item('a', [0, 2], { n: 2 })];
      expect(await port.upsert(PLACE, batch, 2)).toBe(3);
      expect(await port.search(PLACE, { vector: [0, 1], limit: 10, filter: {} })).toEqual([
        { id: 'a', score: 1, metadata: { n: 2 } },
        { id: 'b', score: 1, metadata: {} },
      ]);
    });

    test('metadata may hold any text, and an id must be well-formed Unicode without U+0000', async () => {
      const { port } = await openFresh(open);
      const metadata = { 'a\0b': 'c\0d \ud800 \u{1F600}' };
      await port.upsert(PLACE, [item('\u{1F600}', [1, 0], metadata)], MOST);
      expect(await port.search(PLACE, { vector: [1, 0], limit: 10, filter: {} })).toEqual([
        { id: '\u{1F600}', score: 1, metadata },
      ]);
      for (const id of ['a\0', '\ud800']) {
        const refused = port.upsert(PLACE, [item(id, [1, 0])], MOST);
        await expect(refused).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
        expect(await port.delete(PLACE, [id])).toBe(0);
      }
    });
  });
}
