import { expect, onTestFinished, test, vi } from 'vitest';
import { ChangeFeed, POLL_MS } from '../../../src/daemons/membership/change-feed.ts';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import type { FeedStore } from '../../../src/store/ports/index.ts';
import { sqliteGatewayStore } from '../../../src/store/sqlite/index.ts';
import { tempDir } from '../../support/daemon.ts';

async function openStore() {
  const clock = manualClock();
  const store = await sqliteGatewayStore({ dataDir: await tempDir(), clock, logger: silentLogger });
  onTestFinished(() => store.close());
  const member = { kind: 'gateway', instance: 'a', version: '1', release: null, keys: null } as const;
  const fence = await store.members.join({ ...member, leaseMs: null, isSole: true });
  /** The feed of a process among several, whose announcements do not arrive. */
  async function openFeed(feedStore: FeedStore = store.feed, sharedAs = fence) {
    const feed = await ChangeFeed.open({
      ...{ store: feedStore, sharedAs, staleMs: 30_000, clock, logger: silentLogger },
    });
    onTestFinished(() => feed.close());
    return feed;
  }
  return { store, clock, openFeed };
}

test('followers get the keys of their topic at the next poll, each once', async () => {
  const { store, clock, openFeed } = await openStore();
  await store.revocations.revokeHost('before', 1);
  const feed = await openFeed();
  const revoked: unknown[] = [];
  feed.follow('revocations', (keys) => void revoked.push(keys));
  feed.follow('pauses', (keys) => void revoked.push(keys));
  await store.revocations.revokeHost('h1', 1);
  await store.revocations.revokeHost('h2', 1);
  clock.advance(POLL_MS);
  await expect.poll(() => revoked).toEqual([['h1', 'h2']]);
  clock.advance(POLL_MS);
  await feed.spread();
  expect(revoked).toHaveLength(1);
});

test('a change that a follower could not apply is applied at a later poll', async () => {
  const { store, clock, openFeed } = await openStore();
  const feed = await openFeed();
  const apply = vi.fn().mockRejectedValueOnce(new Error('store away')).mockResolvedValue(undefined);
  feed.follow('revocations', apply);
  await store.revocations.revokeHost('h1', 1);
  clock.advance(POLL_MS);
  await expect.poll(() => apply.mock.calls.length).toBe(1);
  // The failed reading ends in a later turn.
  await expect
    .poll(() => {
      clock.advance(POLL_MS);
      return apply.mock.calls;
    })
    .toEqual([[['h1']], [['h1']]]);
});

test('a process that was suspended past the retention of the feed loads all of its data again', async () => {
  const { store, clock, openFeed } = await openStore();
  const feed = await openFeed();
  const applied: unknown[] = [];
  feed.follow('secrets', (keys) => void applied.push(keys));
  await store.revocations.revokeHost('h1', 1);
  await store.feed.prune(clock.now() + 1);
  await feed.spread();
  expect(applied).toEqual([null]);
  await feed.spread();
  expect(applied).toHaveLength(1);
});

test('spread applies changes committed during an earlier reading', async () => {
  const { store, openFeed } = await openStore();
  const slow = Promise.withResolvers<void>();
  let reads = 0;
  const feed = await openFeed({
    ...store.feed,
    async read(after, limit) {
      const page = await store.feed.read(after, limit);
      if (++reads === 1) await slow.promise;
      return page;
    },
  });
  const applied: unknown[] = [];
  feed.follow('revocations', (keys) => void applied.push(keys));
  const first = feed.spread();
  await expect.poll(() => reads).toBe(1);
  await store.revocations.revokeHost('h1', 1);
  const second = feed.spread();
  slow.resolve();
  await Promise.all([first, second]);
  expect(applied).toEqual([['h1']]);
});

test('the only process of the only node never reads the feed', async () => {
  const { store, clock } = await openStore();
  const read = vi.fn(store.feed.read);
  const feed = await ChangeFeed.open({
    ...{ store: { ...store.feed, read }, sharedAs: undefined, staleMs: 30_000 },
    ...{ clock, logger: silentLogger },
  });
  onTestFinished(() => feed.close());
  await store.revocations.revokeHost('h1', 1);
  await feed.spread();
  clock.advance(10 * POLL_MS);
  expect(read).not.toHaveBeenCalled();
});
