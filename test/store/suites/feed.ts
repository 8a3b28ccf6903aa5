import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Clock } from '../../../src/kit/time/clock.ts';
import type { FeedChange, FeedCursor, GatewayStore, NewMember } from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh, times } from './driver.ts';

/** A transaction of another process that has added a change and has not committed. */
export interface OpenTransaction {
  commit(): Promise<void>;
}

/** Adds a change in a transaction of its own connection and leaves it open. */
export type AddUncommitted = (
  options: { dataDir: string; clock: Clock },
  change: FeedChange,
) => Promise<OpenTransaction>;

const member: NewMember = {
  ...{ kind: 'gateway', instance: 'a', version: '1.0.0', release: null, keys: null },
  ...{ leaseMs: 10_000, isSole: false },
};

const hostRevoked = (key: string): FeedChange => ({ topic: 'revocations', key });

/** What every driver of FeedStore does. */
export function describeFeed(
  name: string,
  open: OpenDriver<GatewayStore>,
  addUncommitted: AddUncommitted,
): void {
  describe(`change feed: ${name}`, () => {
    test('revocations, secrets and entries of announced scopes add changes, and nothing else does', async () => {
      const { port } = await openFresh(open);
      const start = await port.feed.begin();
      const secret = { namespaceId: 'n', pluginId: 'p', event: 'e', instanceId: '' };
      await port.revocations.revokeHost('h1', 1);
      await port.revocations.revokeHost('h1', 2);
      await port.revocations.revokeToken('j1', 9e12, 1);
      await port.secrets.rotate(secret, {
        ...{ sealed: 's', now: 1, graceEndsAt: 2, namespaceInUrl: undefined },
      });
      await port.secrets.previousUsed(secret, 3);
      await port.secrets.revoke(secret);
      await port.secrets.revoke(secret);
      await port.cache.set('webhook-pause', 'e1', true);
      await port.cache.delete('webhook-pause', 'e1');
      await port.cache.delete('webhook-pause', 'e1');
      await port.cache.set('platform', 'other', true);
      const { changes, isComplete } = await port.feed.read(start, 100);
      expect(isComplete).toBe(true);
      expect(changes).toEqual([
        hostRevoked('h1'),
        hostRevoked('j1'),
        { topic: 'secrets', key: '["n","p","e",""]' },
        { topic: 'secrets', key: '["n","p","e",""]' },
        { topic: 'pauses', key: 'e1' },
        { topic: 'pauses', key: 'e1' },
      ]);
    });

    test('each page continues after the previous one, also in another process and after a restart', async () => {
      const { port, second, reopen } = await openFresh(open);
      const other = await second();
      let cursor = await other.feed.begin();
      for (const hostId of ['h1', 'h2', 'h3']) await port.revocations.revokeHost(hostId, 1);
      const first = await other.feed.read(cursor, 2);
      expect(first.changes).toEqual([hostRevoked('h1'), hostRevoked('h2')]);
      ({ cursor } = first);
      const again = await reopen();
      expect((await again.feed.read(cursor, 2)).changes).toEqual([hostRevoked('h3')]);
      const end = (await again.feed.read(cursor, 2)).cursor;
      expect((await again.feed.read(end, 2)).changes).toEqual([]);
      expect((await again.feed.read(await again.feed.begin(), 2)).changes).toEqual([]);
    });

    test('a cursor does not pass a change that commits late', async () => {
      const contexts: Array<{ dataDir: string; clock: Clock }> = [];
      const { port } = await openFresh<GatewayStore>((options) => {
        contexts.push(options);
        return open(options);
      });
      let cursor = await port.feed.begin();
      const seen: FeedChange[] = [];
      const read = async () => {
        const page = await port.feed.read(cursor, 100);
        seen.push(...page.changes);
        ({ cursor } = page);
      };
      const late = await addUncommitted(contexts[0]!, hostRevoked('late'));
      // Some drivers let this one commit first; with others it waits for the open transaction.
      const quick = port.revocations.revokeHost('quick', 1);
      await Promise.race([quick, sleep(200)]);
      await read();
      await read();
      await late.commit();
      await quick;
      await expect.poll(() => read().then(() => seen.length)).toBe(2);
      await read();
      expect(seen.map(({ key }) => key).sort()).toEqual(['late', 'quick']);
    });

    test('readers miss no change and see none twice while several processes write', async () => {
      const { port, second } = await openFresh(open);
      const writers = [port, await second(), await second()];
      const reader = await second();
      let cursor: FeedCursor = await reader.feed.begin();
      const seen: string[] = [];
      let isDone = false;
      const writing = times(90, (i) =>
        writers[i % 3]!.revocations.revokeHost(`h${i}`, 1).then(() => sleep(i % 7)),
      ).finally(() => {
        isDone = true;
      });
      for (let wasDone = false; !wasDone; ) {
        wasDone = isDone;
        const page = await reader.feed.read(cursor, 7);
        seen.push(...page.changes.map(({ key }) => key));
        // The last page of a read can be empty although later changes exist. Only the cursor then changes.
        if (page.cursor !== cursor) wasDone = false;
        ({ cursor } = page);
        await sleep(1);
      }
      await writing;
      expect(seen.toSorted()).toEqual(Array.from({ length: 90 }, (_, i) => `h${i}`).toSorted());
    }, 30_000);

    test('a reader whose next changes were pruned is told so, others continue', async () => {
      const { port, clock } = await openFresh(open);
      const old = await port.feed.begin();
      await port.revocations.revokeHost('h1', 1);
      const current = (await port.feed.read(old, 10)).cursor;
      clock.advance(5000);
      await port.revocations.revokeHost('h2', 1);
      expect(await port.feed.prune(clock.now() - 1000)).toBe(1);
      const gap = await port.feed.read(old, 10);
      expect([gap.isComplete, gap.changes]).toEqual([false, []]);
      expect((await port.feed.read(gap.cursor, 10)).changes).toEqual([]);
      expect(await port.feed.read(current, 10)).toMatchObject({
        isComplete: true,
        changes: [hostRevoked('h2')],
      });
      expect(await port.feed.prune(clock.now() + 1)).toBe(1);
      expect((await port.feed.read(current, 10)).isComplete).toBe(false);
      expect(await port.feed.read(await port.feed.begin(), 10)).toMatchObject({
        isComplete: true,
        changes: [],
      });
    });

    test('live members are behind until they have read a change', async () => {
      const { port, clock } = await openFresh(open);
      const { members, feed, revocations } = port;
      const [a, b] = [await members.join(member), await members.join({ ...member, instance: 'b' })];
      const start = await feed.begin();
      await Promise.all([feed.noteRead(a, start), feed.noteRead(b, start)]);
      expect(await feed.behind(await feed.latest())).toEqual([]);
      await revocations.revokeHost('h1', 1);
      const mark = await feed.latest();
      expect(await feed.behind(mark)).toEqual([a, b]);
      await feed.noteRead(a, (await feed.read(start, 10)).cursor);
      expect(await feed.behind(mark)).toEqual([b]);
      const joined = await members.join({ ...member, instance: 'c' });
      expect(await feed.behind(mark)).toEqual([b, joined]);
      clock.advance(10_000);
      expect(await feed.behind(mark)).toEqual([]);
    });

    test('revocations are found by their host or token', async () => {
      const { port } = await openFresh(open);
      await port.revocations.revokeHost('h1', 1);
      await port.revocations.revokeToken('j1', 9000, 1);
      await port.revocations.revokeToken('j2', 9000, 1);
      expect(await port.revocations.find(['h1', 'j2', 'absent'])).toMatchObject([
        { kind: 'host', subject: 'h1', expiresAt: null },
        { kind: 'token', subject: 'j2', expiresAt: 9000 },
      ]);
      expect(await port.revocations.find([])).toEqual([]);
    });
  });
}
