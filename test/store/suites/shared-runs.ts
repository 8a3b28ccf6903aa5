import { describe, expect, test } from 'vitest';
import { manualClock } from '../../../src/kit/time/clock.ts';
import type { RunRecord, SharedRunStore, WorkflowStore } from '../../../src/store/ports/index.ts';
import { atEnd } from '../../support/at-end.ts';
import { tempDir } from '../../support/daemon.ts';
import { type OpenDriver, openFresh } from './driver.ts';
import { change, claim, started } from './workflow.ts';

const SUSPECTS = { crashes: 2, killsPerCrash: 10 };

/** A member with its boot, as a workflow service starts. */
async function join(store: WorkflowStore, instance: string, { hadFault = false, pid = 1 } = {}) {
  const member = await store.members.join({
    ...{ kind: 'workflow', instance, version: '1.0.0', release: null, keys: null, leaseMs: 10_000 },
    isSole: false,
  });
  const fence = await store.boots.begin({
    ...{ bootId: instance, pid, now: 5000, leaseMs: 1000, exclusive: false, hadFault, oomKills: null },
    member: { instance, fence: member },
  });
  return { member, fence };
}

const shared = (store: WorkflowStore): SharedRunStore => store.shared!;

function claimReady(store: WorkflowStore, fence: number, shares: Record<string, number>, limit = 100) {
  const named = Object.entries(shares).map(([tenantId, most]) => ({ tenantId, limit: most }));
  return shared(store).claim(fence, 'ready', { shares: named, limit, now: 9000, suspects: SUSPECTS });
}

const seqsOf = (claimed: Awaited<ReturnType<SharedRunStore['claim']>>) => claimed.map(({ run }) => run.seq);

/** A run of the process with work in flight. */
async function inFlight(store: WorkflowStore, fence: number): Promise<RunRecord> {
  const run = await started(store);
  await store.runs.write(claim(run, fence));
  const progress = { status: 'running' as const, fence, inFlight: true };
  await store.runs.write(change(run, { fence, status: 'running' }, progress));
  return run;
}

const parked = (run: RunRecord, fence: number, inboxSeen: number) => ({
  ...change(run, { fence, status: 'running' as const }, { status: 'waiting', fence: null, wakeAt: null }),
  inboxSeen,
});

/** The suite of stores whose runs several processes share. */
export function describeSharedRuns(name: string, open: OpenDriver<WorkflowStore>): void {
  describe(`shared runs: ${name}`, () => {
    test('processes that claim at once never get the same run', async () => {
      const dataDir = await tempDir();
      const stores = await Promise.all(
        Array.from({ length: 4 }, async () => {
          const { port, close } = await open({ dataDir, clock: manualClock(9000) });
          atEnd(close);
          return port;
        }),
      );
      for (let n = 0; n < 300; n++) await started(stores[0]!);
      const claims = await Promise.all(
        stores.map(async (store, n) => {
          const { fence } = await join(store, `node ${n}`);
          const own: number[] = [];
          for (let got = 1; got > 0; ) {
            const claimed = seqsOf(await claimReady(store, fence, { acme: 7 }));
            got = claimed.length;
            own.push(...claimed);
          }
          return own;
        }),
      );
      expect(claims.flat()).toHaveLength(300);
      expect(new Set(claims.flat()).size).toBe(300);
    });

    test('a claim takes the first runs of each tenant within its share and the limit', async () => {
      const { port } = await openFresh(open);
      const { fence } = await join(port, 'a');
      const [low, high] = [await started(port), await started(port, { priority: 5 })];
      await started(port);
      const other = await started(port, { tenantId: 'other' });
      expect(seqsOf(await claimReady(port, fence, { acme: 1, other: 1 })).toSorted()).toEqual(
        [high.seq, other.seq].toSorted(),
      );
      const [next, ...rest] = await claimReady(port, fence, { acme: 9 }, 1);
      expect([next?.run.seq, next?.run.fence, next?.isFresh, rest]).toEqual([low.seq, fence, true, []]);
      expect(await shared(port).tenants('ready')).toEqual(['acme']);
    });

    test('a process that was declared dead claims nothing, and its claims are given back', async () => {
      const { port } = await openFresh(open);
      const [a, b] = [await join(port, 'a'), await join(port, 'b')];
      const run = await started(port);
      expect(await claimReady(port, a.fence, { acme: 1 })).toHaveLength(1);
      expect(await claimReady(port, b.fence, { acme: 1 })).toEqual([]);
      await port.members.leave(a.member);
      expect([await shared(port).endDead(9000), await shared(port).endDead(9000)]).toEqual([1, 0]);
      expect(await port.boots.interrupt(9000, 10, () => false)).toEqual([]);
      expect(await claimReady(port, a.fence, { acme: 1 })).toEqual([]);
      expect(seqsOf(await claimReady(port, b.fence, { acme: 1 }))).toEqual([run.seq]);
    });

    test('claims whose reply was lost are given back, and those that the process knows are kept', async () => {
      const { port } = await openFresh(open);
      const { fence } = await join(port, 'a');
      const [known, lost] = [await started(port), await started(port)];
      await claimReady(port, fence, { acme: 2 });
      await shared(port).unclaimExcept(fence, [known.id], 9000);
      expect(seqsOf(await claimReady(port, fence, { acme: 2 }))).toEqual([lost.seq]);
      // A run that has started is interrupted, without blame.
      const running = { status: 'running' as const, fence, ready: false, inFlight: true };
      await port.runs.write(change(lost, { fence, status: 'queued' }, running));
      await shared(port).unclaimExcept(fence, [known.id], 9000);
      const [interrupted] = await port.boots.interrupt(9000, 10, () => false);
      expect(interrupted).toMatchObject({ seq: lost.seq, status: 'interrupted', crashes: 0, kills: 0 });
    });

    test('a restarted node ends its former boot, and knows the fault of no other node', async () => {
      const { port } = await openFresh(open);
      const [a, b] = [await join(port, 'a'), await join(port, 'b')];
      for (const { fence } of [a, b]) {
        await inFlight(port, fence);
      }
      await port.members.leave(b.member);
      await join(port, 'a', { hadFault: true });
      const interrupted = await port.boots.interrupt(9000, 10, () => false);
      expect(interrupted.map(({ crashes, kills }) => [crashes, kills])).toEqual([
        [1, 0],
        [0, 1],
      ]);
    });

    test('a crash counts as one even if another process interrupted the runs before the node could report it', async () => {
      const { port } = await openFresh(open);
      const [a, b] = [await join(port, 'a'), await join(port, 'b')];
      const runs = [await inFlight(port, a.fence), await inFlight(port, b.fence)];
      const counts = async () =>
        Promise.all(
          runs.map(async ({ id }) => {
            const { crashes, kills } = (await port.runs.find('acme', id))!;
            return [crashes, kills];
          }),
        );
      for (const { member } of [a, b]) await port.members.leave(member);
      await shared(port).endDead(9000);
      await port.boots.interrupt(9000, 10, () => false);
      await port.boots.resume(9000, 10, () => false);
      expect(await counts()).toEqual([
        [0, 1],
        [0, 1],
      ]);
      const c = await join(port, 'c');
      const [claimed] = await claimReady(port, c.fence, { acme: 1 });
      // The node reports the crash once, however often its next processes fail to start.
      for (const hadFault of [false, true, true])
        await shared(port).recordCrash({ instance: 'a', hadFault, oomKills: null });
      const late = [
        [1, 0],
        [0, 1],
      ];
      expect(await counts()).toEqual(late);
      // The present owner of the run has read the former counts.
      const { run } = claimed!;
      const running = { fence: c.fence, status: 'running' as const };
      await port.runs.write(change(run, { ...running, status: 'queued' }, running));
      expect(await counts()).toEqual(late);
      await port.runs.write(change(run, running, { ...running, crashes: 0, kills: 0 }));
      expect(await counts()).toEqual([
        [0, 0],
        [0, 1],
      ]);
    });

    test('a crash that is recorded first counts once, and an orderly stop never counts', async () => {
      const { port } = await openFresh(open);
      const [a, b] = [await join(port, 'a'), await join(port, 'b')];
      for (const { fence } of [a, b]) await inFlight(port, fence);
      await port.boots.stopping(b.fence);
      const record = async () => {
        for (const instance of ['a', 'b'])
          await shared(port).recordCrash({ instance, hadFault: true, oomKills: null });
      };
      await record();
      for (const { member } of [a, b]) await port.members.leave(member);
      await shared(port).endDead(9000);
      await port.boots.interrupt(9000, 10, () => false);
      await record();
      const { runs } = await port.runs.list('acme', { kind: 'workflow', limit: 10 });
      expect(runs.map(({ crashes, kills }) => [crashes, kills]).toSorted()).toEqual([
        [0, 0],
        [1, 0],
      ]);
    });

    test('a crash that the supervisor reports ends that process, and no newer process of the node', async () => {
      const { port } = await openFresh(open);
      const [a, b] = [await join(port, 'a'), await join(port, 'b')];
      for (const { fence } of [a, b]) await inFlight(port, fence);
      const report = async (pid: number) => {
        await shared(port).endCrashed({ instance: 'a', pid, hadFault: true, oomKills: null });
        return shared(port).endDead(9000);
      };
      expect(await report(2)).toBe(0);
      expect(await report(1)).toBe(1);
      const interrupted = await port.boots.interrupt(9000, 10, () => false);
      expect(interrupted.map(({ crashes, kills }) => [crashes, kills])).toEqual([[1, 0]]);
      await join(port, 'a', { pid: 3 });
      expect(await report(1)).toBe(0);
    });

    test('due runs are claimed once, and planned runs are left to be released', async () => {
      const { port } = await openFresh(open);
      const { fence } = await join(port, 'a');
      const planned = await started(port, { runAt: 8000 });
      const run = await started(port);
      await port.runs.write(claim(run, fence));
      const waiting = { status: 'waiting' as const, fence: null, wakeAt: 8000 };
      await port.runs.write(change(run, { fence, status: 'running' }, waiting));
      const claimDue = async () =>
        seqsOf(
          await shared(port).claim(fence, 'due', {
            ...{ shares: [{ tenantId: 'acme', limit: 5 }], limit: 5, now: 9000, suspects: SUSPECTS },
          }),
        );
      expect([await claimDue(), await claimDue()]).toEqual([[run.seq], []]);
      expect((await shared(port).planned(9000, 10)).map(({ seq }) => seq)).toEqual([planned.seq]);
      await shared(port).unclaim(fence, [run.seq]);
      expect(await claimDue()).toEqual([run.seq]);
    });

    test('the owner gets a notice of an entry by another process, and of a child that ends', async () => {
      const { port } = await openFresh(open);
      const { fence } = await join(port, 'a');
      const run = await started(port);
      await port.runs.write(claim(run, fence));
      const entry = { kind: 'signal' as const, name: 'go', payload: '1', at: 7000 };
      const limits = { once: false, most: 9, mostBytes: 100 };
      const unread = async () => (await shared(port).unread(fence, [run.seq], 9000)).notices;
      await port.runs.deliver(run.seq, entry, { ...limits, by: fence });
      expect(await unread()).toEqual([]);
      expect(await port.runs.deliver(run.seq, entry, limits)).toMatchObject({ owner: fence });
      expect(await port.queue.wake(run.id, 7000)).toBe(fence);
      const [notice] = await unread();
      expect(notice).toMatchObject({ id: run.id, count: 2, entries: [{ n: 1 }, { n: 2 }] });
      await shared(port).read(fence, [notice!]);
      expect(await unread()).toEqual([]);
    });

    test('a run that is parked with an unread notice is due at once, whichever entry it read last', async () => {
      const { port } = await openFresh(open);
      const { fence } = await join(port, 'a');
      const entry = { kind: 'signal' as const, name: 'go', payload: '1', at: 7000 };
      const limits = { once: false, most: 9, mostBytes: 100 };
      const run = await started(port);
      await port.runs.write(claim(run, fence));
      await port.runs.deliver(run.seq, entry, limits);
      // The owner delivered the second entry itself, and has not read the first one.
      await port.runs.deliver(run.seq, entry, { ...limits, by: fence });
      await port.runs.write(parked(run, fence, 2));
      expect((await port.queue.due(9000, 10)).map(({ id }) => id)).toEqual([run.id]);
    });

    test('a cancel request reaches the owner until the run is being cancelled', async () => {
      const { port } = await openFresh(open);
      const { fence } = await join(port, 'a');
      const run = await started(port);
      await shared(port).requestCancel(run.seq);
      await port.runs.write(claim(run, fence));
      const cancelled = async () => (await shared(port).unread(fence, [], 9000)).cancelled;
      expect(await cancelled()).toEqual([]);
      await shared(port).requestCancel(run.seq);
      expect(await cancelled()).toEqual([run.id]);
      expect(await port.boots.leftToCancel()).toEqual([run.id]);
      const cleanUp = { status: 'cancelling' as const, fence, ending: 'cancelled' as const };
      await port.runs.write(change(run, { fence, status: 'running' }, cleanUp));
      expect(await cancelled()).toEqual([]);
    });

    test('a due schedule belongs to one live member that has its workflow', async () => {
      const { port } = await openFresh(open);
      const [a, b] = [await join(port, 'a'), await join(port, 'b')];
      const schedule = {
        ...{ id: 's', tenantId: 'default', workflowId: 'nightly', cron: '* * * * *', timezone: 'UTC' },
        ...{ overlap: 'skip' as const, catchUp: 'none' as const, input: '{}', nextAt: 8000 },
      };
      await port.schedules.sync([schedule], { workflows: new Set(['nightly']), plugins: new Set() }, 1000);
      const due = async ({ member: fence }: typeof a, workflows = ['nightly']) =>
        (await port.schedules.due(9000, { fence, workflows })).map(({ id }) => id);
      expect([await due(b, []), await due(a), await due(b), await due(a)]).toEqual([[], ['s'], [], ['s']]);
      await port.members.leave(a.member);
      expect(await due(b)).toEqual(['s']);
      // The ended member no longer has the claim.
      await port.schedules.served('s', { nextAt: 1, lastAt: 1, lastRunId: 'late' }, a.member);
      await port.schedules.served('s', { nextAt: 9500, lastAt: 8000, lastRunId: 'run' }, b.member);
      expect(await port.schedules.find('default', 's')).toMatchObject({ nextAt: 9500, lastRunId: 'run' });
    });
  });
}
