import { expect, test } from 'vitest';
import { deleteState, incrementState, LIMITS, listState, putState } from '../../../src/contracts/index.ts';
import { state } from '../../../src/daemons/state/index.ts';
import { startTestDaemon } from '../../support/daemon.ts';

const MEBIBYTE = 1024 * 1024;
const LARGEST = 'x'.repeat(LIMITS.stateValueBytes - 2);
const at = (key: string, namespace = 'plugin:github:cache') => ({ params: { namespace, key } });
const isFull = { code: 'QUOTA_EXCEEDED', status: 429 };

/** A platform whose quotas are small. */
const startSmall = (quota: { maxBytes?: number; maxKeys?: number }) =>
  startTestDaemon(state, { config: { state: { quotas: { entries: quota, cache: quota } } } });

test('36 MB do not fit into a cache: 16 MiB of one plugin and one tenant do', async () => {
  const daemon = await startTestDaemon(state);
  let written = 0;
  const fill = async () => {
    for (; written < 36 * MEBIBYTE; written += LARGEST.length)
      await daemon.call(putState, { ...at(`k${written}`), body: { value: LARGEST } });
  };
  await expect(fill()).rejects.toMatchObject({
    ...isFull,
    message: expect.stringContaining('Delete some entries, or raise state.quotas.cache.maxBytes'),
  });
  expect(written).toBeLessThanOrEqual(16 * MEBIBYTE);
  expect(written).toBeGreaterThan(15 * MEBIBYTE);

  // Another plugin, and the state of the same one, have room of their own.
  const body = { value: LARGEST };
  await daemon.call(putState, { ...at('k', 'plugin:other:cache'), body });
  await daemon.call(putState, { ...at('k', 'plugin:github:state'), body });

  // What takes no more room than before passes; deleting frees room.
  await daemon.call(putState, { ...at('k0'), body: { value: 'small' } });
  await daemon.call(deleteState, at(`k${LARGEST.length}`));
  await daemon.call(putState, { ...at('again'), body });
});

test('concurrent writes do not exceed the quota together', async () => {
  const daemon = await startSmall({ maxBytes: 1000 });
  const value = 'x'.repeat(300);
  const writes = Array.from({ length: 20 }, (_, n) =>
    daemon.call(putState, { ...at(`k${n}`), body: { value } }),
  );
  const settled = await Promise.allSettled(writes);
  expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
  const { items } = await daemon.call(listState, {
    params: { namespace: 'plugin:github:cache' },
    query: {},
  });
  expect(items).toHaveLength(3);
});

test('keys have a number; counters and writes "if absent" count; expired entries make room', async () => {
  const daemon = await startSmall({ maxKeys: 3 });
  await daemon.call(incrementState, { ...at('counter'), body: {} });
  await daemon.call(putState, { ...at('once'), body: { value: 1, ifAbsent: true } });
  await daemon.call(putState, { ...at('short'), body: { value: 1, ttlMs: 1000 } });

  await expect(daemon.call(incrementState, { ...at('more'), body: {} })).rejects.toMatchObject(isFull);
  await expect(
    daemon.call(putState, { ...at('more'), body: { value: 1, ifAbsent: true } }),
  ).rejects.toMatchObject(isFull);
  expect(await daemon.call(putState, { ...at('once'), body: { value: 22, ifAbsent: true } })).toEqual({
    written: false,
  });
  expect(await daemon.call(incrementState, { ...at('counter'), body: { by: 5 } })).toMatchObject({
    value: 6,
  });

  daemon.clock.advance(1000);
  await daemon.call(putState, { ...at('more'), body: { value: 1 } });
});
