import { describe, expect, test } from 'vitest';
import type {
  NewRun,
  RunProgress,
  RunRecord,
  RunWrite,
  StartOptions,
  WorkflowStore,
} from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh, times } from './driver.ts';

let counter = 0;

export function newRun(more: Partial<NewRun> = {}): NewRun {
  return {
    id: `run_${String(++counter).padStart(8, '0')}`,
    kind: 'workflow',
    tenantId: 'acme',
    workflowId: 'nightly',
    definitionHash: 'h1',
    priority: 0,
    runAt: null,
    deadlineAt: null,
    concurrencyKey: null,
    concurrencyLimit: null,
    trigger: 'manual',
    parentId: null,
    parentStep: null,
    rerunOf: null,
    depth: 0,
    hostId: 'ci',
    requestId: 'r',
    traceId: 't',
    deliveryId: null,
    parentSpanId: null,
    labels: null,
    endTasks: null,
    handles: null,
    handlerDepth: 0,
    input: '{"a":1}',
    createdAt: 1000 + counter,
    ...more,
  };
}

export const OPTIONS: StartOptions = {
  definition: { hash: 'h1', workflowId: 'nightly', body: '{"id":"nightly"}' },
  day: '2030-01-01',
};

export async function started(
  store: WorkflowStore,
  more: Partial<NewRun> = {},
  options: Partial<StartOptions> = {},
) {
  const result = await store.runs.start(newRun(more), { ...OPTIONS, ...options });
  if (result.outcome !== 'started') throw new Error(result.outcome);
  return result.run;
}

export const boot = (store: WorkflowStore, exclusive = true, now = 5000, hadFault = true) =>
  store.boots.begin({ bootId: 'b', pid: 1, now, leaseMs: 1000, exclusive, hadFault, oomKills: 7 });

const NOTHING = {
  jobs: [],
  steps: [],
  attempts: [],
  events: [],
  logs: [],
  taken: [],
  inboxSeen: 0,
  wakeParent: null,
  at: 6000,
};

export function change(
  run: RunRecord,
  expect: RunWrite['expect'],
  progress: Partial<RunProgress> | null,
): RunWrite {
  return { ...NOTHING, seq: run.seq, expect, run: progress && { ...run, ...progress } };
}

export const claim = (run: RunRecord, fence: number): RunWrite =>
  change(
    run,
    { fence: null, status: 'queued' },
    { status: 'running', fence, ready: false, reason: null, startedAt: 6000 },
  );

const STEP = {
  jobKey: 'main',
  index: 0,
  found: null,
  status: 'running' as const,
  attempts: 1,
  failures: 0,
  output: null,
  error: null,
  wait: null,
  wakeAt: null,
  idempotencyKey: null,
  readyAt: 1,
  startedAt: 2,
  queuedAt: null,
  attemptAt: 2,
  waitingAt: null,
  finishedAt: null,
  endOrder: null,
};

const JOB = {
  key: 'main',
  jobId: 'main',
  status: 'waiting' as const,
  matrix: null,
  outputs: null,
  error: null,
  startedAt: 6000,
  finishedAt: null,
};

/** What every driver of WorkflowStore does. @spec Workflow run */
export function describeWorkflow(name: string, open: OpenDriver<WorkflowStore>): void {
  describe(`workflow: ${name}`, () => {
    test('a run is stored as it was started, including large values, and survives a restart', async () => {
      const { port, reopen } = await openFresh(open);
      const input = JSON.stringify({ text: 'x'.repeat(50_000) });
      const run = await started(port, { input });
      expect(run).toMatchObject({ status: 'queued', ready: true, reason: 'capacity', input });
      const again = await reopen();
      expect(await again.runs.find('acme', run.id)).toEqual(run);
      expect(await again.runs.find('other', run.id)).toBeUndefined();
      expect((await again.runs.load(run.seq))?.run).toEqual(run);
      expect(await again.definition('h1')).toEqual(OPTIONS.definition);
    });

    test('concurrent starts with one idempotency key create one run, and another digest is reported', async () => {
      const { port } = await openFresh(open);
      const idempotency = { key: 'k', digest: 'd', expiresAt: 1e15 };
      const results = await times(10, () => port.runs.start(newRun(), { ...OPTIONS, idempotency }));
      expect(results.filter(({ outcome }) => outcome === 'started')).toHaveLength(1);
      const ids = results.map((result) => ('run' in result ? result.run?.id : ''));
      expect(new Set(ids).size).toBe(1);
      const other = { ...OPTIONS, idempotency: { ...idempotency, digest: 'e' } };
      const known = { digest: 'd', run: await port.runs.find('acme', ids[0]!) };
      expect(await port.runs.start(newRun(), other)).toEqual({ outcome: 'different', ...known });
      expect(await port.runs.keyed('acme', 'k', 1e15 - 1)).toEqual(known);
      expect(await port.runs.keyed('acme', 'k', 1e15)).toBeUndefined();
      expect(await port.runs.keyed('b', 'k', 0)).toBeUndefined();
      expect((await port.runs.start(newRun({ tenantId: 'b' }), other)).outcome).toBe('started');
    });

    test('the runs of a trace are found in the order of their starts, in one tenant', async () => {
      const { port } = await openFresh(open);
      const first = await started(port, { traceId: 'trace-a', deliveryId: 'd1' });
      await started(port, { traceId: 'trace-b' });
      await started(port, { traceId: 'trace-a', tenantId: 'b' });
      const second = await started(port, { traceId: 'trace-a', kind: 'job' });
      expect(await port.runs.ofTrace('acme', 'trace-a', 9)).toEqual([first, second]);
      expect(first.deliveryId).toBe('d1');
      expect(await port.runs.ofTrace('acme', 'trace-a', 1)).toEqual([first]);
      expect(await port.runs.ofTrace('c', 'trace-a', 9)).toEqual([]);
    });

    test('a step of a parent run starts only one child run', async () => {
      const { port } = await openFresh(open);
      const child = { parentId: 'run_p', parentStep: 'main.c' };
      const first = await started(port, child);
      expect(await port.runs.start(newRun(child), OPTIONS)).toEqual({ outcome: 'known', run: first });
    });

    test('limits hold under concurrent starts', async () => {
      const { port } = await openFresh(open);
      const limits = { concurrent: 3, perDay: 5, perMonth: null };
      const results = await times(10, () => port.runs.start(newRun(), { ...OPTIONS, limits }));
      expect(results.filter(({ outcome }) => outcome === 'started')).toHaveLength(3);
      expect(
        results.filter((result) => result.outcome === 'over' && result.limit === 'concurrent'),
      ).toHaveLength(7);
      const daily = { concurrent: null, perDay: 5, perMonth: 6 };
      const more = await times(5, () => port.runs.start(newRun(), { ...OPTIONS, limits: daily }));
      expect(more.filter(({ outcome }) => outcome === 'started')).toHaveLength(2);
      expect(
        (await port.runs.start(newRun(), { ...OPTIONS, limits: daily, day: '2030-01-02' })).outcome,
      ).toBe('started');
      expect(await port.runs.start(newRun(), { ...OPTIONS, limits: daily, day: '2030-01-03' })).toEqual({
        outcome: 'over',
        limit: 'perMonth',
      });
    });

    test('one of several claims succeeds, and only the owner of a run may write', async () => {
      const { port } = await openFresh(open);
      const run = await started(port);
      const fence = await boot(port);
      const claims = await times(5, () => port.runs.write(claim(run, fence)));
      expect(claims.filter(({ applied }) => applied)).toHaveLength(1);
      const held = { fence, status: 'running' as const };
      const step = { ...change(run, held, null), steps: [STEP] };
      expect((await port.runs.write(step)).applied).toBe(true);
      expect((await port.runs.write({ ...step, expect: { ...held, fence: fence + 1 } })).applied).toBe(false);
      expect((await port.runs.load(run.seq))?.steps).toEqual([STEP]);
    });

    test('of writes in the same moment, only those of lost runs change nothing', async () => {
      const { port } = await openFresh(open);
      const runs = await times(3, () => started(port));
      const fence = await boot(port);
      await Promise.all(runs.map((run) => port.runs.write(claim(run, fence))));
      const status = 'running' as const;
      const written = await Promise.all(
        runs.map((run, n) =>
          port.runs.write({
            ...change(run, { fence: n === 1 ? fence + 1 : fence, status }, { status: 'succeeded' }),
            steps: [STEP],
            events: [{ at: 6000, type: 'run.succeeded' }],
          }),
        ),
      );
      expect(written.map(({ applied }) => applied)).toEqual([true, false, true]);
      const loaded = await Promise.all(runs.map(({ seq }) => port.runs.load(seq)));
      expect(loaded.map((each) => [each?.run.status, each?.steps.length])).toEqual([
        ['succeeded', 1],
        ['running', 0],
        ['succeeded', 1],
      ]);
      const events = await Promise.all(runs.map(({ seq }) => port.runs.events(seq, 0, 10)));
      expect(events.map((each) => each.filter(({ item }) => item.type === 'run.succeeded').length)).toEqual([
        1, 0, 1,
      ]);
    });

    test('a boot that was declared dead can neither claim, write nor renew', async () => {
      const { port } = await openFresh(open);
      const [mine, waiting] = [await started(port), await started(port)];
      const dead = await boot(port, false, 1000);
      await port.runs.write(claim(mine, dead));
      expect(await port.boots.renew(dead, { leaseUntil: 2000, oomKills: 7 })).toBe(true);
      const alive = await boot(port, false, 5000);
      expect(
        (await port.boots.interrupt(5000, 10, ({ crashes }) => crashes >= 3)).map(({ id, status }) => [
          id,
          status,
        ]),
      ).toEqual([[mine.id, 'interrupted']]);
      expect(await port.boots.renew(dead, { leaseUntil: 9000, oomKills: 7 })).toBe(false);
      expect(
        (await port.runs.write(change(mine, { fence: dead, status: 'running' }, { status: 'succeeded' })))
          .applied,
      ).toBe(false);
      expect((await port.runs.write(claim(waiting, dead))).applied).toBe(false);
      expect((await port.runs.write(claim(waiting, alive))).applied).toBe(true);
    });

    test('a boot within its lease keeps its runs', async () => {
      const { port } = await openFresh(open);
      const run = await started(port);
      const first = await boot(port, false, 1000);
      await port.runs.write(claim(run, first));
      await boot(port, false, 1500);
      expect(await port.boots.interrupt(1500, 10, ({ crashes }) => crashes >= 3)).toEqual([]);
    });

    test('interrupted runs are queued first with their jobs and steps marked, and poison runs fail', async () => {
      const { port } = await openFresh(open);
      const [old, poison] = [await started(port), await started(port)];
      const begin = async (run: RunRecord, fence: number) => {
        const found = (await port.runs.find('acme', run.id))!;
        await port.runs.write({ ...claim(found, fence), expect: { fence: null, status: found.status } });
        const held = { fence, status: 'running' as const };
        await port.runs.write(change(found, held, { ...held, inFlight: true }));
        return held;
      };
      for (let crash = 0; crash < 2; crash++) {
        await begin(poison, await boot(port));
        await boot(port);
        await port.boots.interrupt(7000, 10, () => false);
        await port.boots.resume(7000, 10, () => false);
      }
      const first = await boot(port);
      await begin(poison, first);
      const held = await begin(old, first);
      await port.runs.write({ ...change(old, held, null), steps: [STEP] });
      const urgent = await started(port, { priority: 100 });
      await boot(port);
      await port.boots.interrupt(7000, 10, ({ crashes }) => crashes >= 3);
      expect((await port.runs.load(old.seq))?.steps[0]?.status).toBe('interrupted');
      expect(await port.runs.attempts(old.seq)).toMatchObject([{ status: 'interrupted', attempt: 1 }]);
      const resumed = await port.boots.resume(7000, 10, ({ crashes }) => crashes >= 3);
      expect(resumed.map(({ id, status }) => [id, status])).toEqual([
        [old.id, 'queued'],
        [poison.id, 'failed'],
      ]);
      expect((await port.queue.ready('acme', 10)).map(({ id }) => id)).toEqual([old.id, urgent.id]);
      const events = await port.runs.events(old.seq, 0, 100);
      expect(events.map(({ item }) => item.type)).toEqual(['run.queued', 'run.interrupted', 'run.resumed']);
    });

    test('a clean-up is due again after a crash, until its run is poison', async () => {
      const { port } = await openFresh(open);
      const run = await started(port);
      for (const [at, counted] of [
        [7000, 1],
        [8000, 2],
      ] as const) {
        const fence = await boot(port);
        const { status } = (await port.runs.find('acme', run.id))!;
        const cleaning = { status: 'cancelling', ending: 'timed_out', endingAt: 6500, fence } as const;
        const write = { ...cleaning, ready: false, startedAt: 6000, crashes: counted - 1, inFlight: true };
        await port.runs.write({ ...change(run, { fence: null, status }, write), steps: [STEP] });
        await boot(port);
        const [interrupted] = await port.boots.interrupt(at, 10, ({ crashes }) => crashes >= 3);
        expect(interrupted).toMatchObject({ status: 'cancelling', endingAt: 6500, crashes: counted });
        expect((await port.queue.due(at, 10)).map(({ id }) => id)).toEqual([run.id]);
        expect((await port.runs.load(run.seq))?.steps[0]?.status).toBe('interrupted');
      }
      const fence = await boot(port);
      const write = { status: 'cancelling', ending: 'timed_out', fence, crashes: 2, inFlight: true } as const;
      const wait = JSON.stringify({ for: 'signal', name: 'go' });
      await port.runs.write({
        ...change(run, { fence: null, status: 'cancelling' }, { ...write, startedAt: 6000 }),
        steps: [STEP, { ...STEP, index: 1, status: 'waiting', wait, wakeAt: 9500 }],
      });
      await boot(port);
      await port.boots.interrupt(9000, 10, ({ crashes }) => crashes >= 3);
      const [, waited] = (await port.runs.load(run.seq))!.steps;
      expect(waited).toMatchObject({ status: 'cancelled', wait: null, wakeAt: null });
      expect(await port.runs.find('acme', run.id)).toMatchObject({ status: 'timed_out', finishedAt: 9000 });
    });

    test('clean-ups without an owner are due after a restart, and their limits exclude the downtime', async () => {
      const { port } = await openFresh(open);
      const fence = await boot(port);
      const [counting, paused, job, held] = await Promise.all([1, 2, 3, 4].map(() => started(port)));
      const running = { fence, status: 'running' as const };
      const cleaning = { status: 'cancelling', ending: 'cancelled', endingAt: 5200, ready: false } as const;
      const parked = { ...cleaning, fence: null, wakeAt: 66_500 };
      for (const run of [counting, paused, job, held]) await port.runs.write(claim(run!, fence));
      await port.runs.write(change(counting!, running, parked));
      await port.runs.write(change(paused!, running, { ...parked, endingHeldAt: 5600 }));
      await port.runs.write(change(held!, running, { ...cleaning, fence }));
      const ending = { ...JOB, ending: 'timed_out', endingAt: 6500, endingHeldAt: null } as const;
      await port.runs.write({
        ...change(job!, running, { status: 'waiting', fence: null, startedAt: 6000 }),
        jobs: [ending, { ...ending, key: 'done', endingAt: 5200, finishedAt: 5900 }],
      });
      // The lease of 1000 was taken at 5000 and not renewed.
      const aliveAt = await port.boots.lastAlive(1000);
      expect(aliveAt).toBe(5000);
      await port.boots.renew(fence, { leaseUntil: 7000, oomKills: null });
      expect(await port.boots.lastAlive(1000)).toBe(6000);
      await port.boots.resumeCleanUps({ aliveAt: 6000, now: 9000, wakeAt: 8000 });
      const find = (run: RunRecord | undefined) => port.runs.find('acme', run!.id);
      expect(await find(counting)).toMatchObject({ endingAt: 8200, wakeAt: 8000 });
      expect(await find(paused)).toMatchObject({ endingAt: 5200, endingHeldAt: 5600, wakeAt: 8000 });
      expect(await find(held)).toMatchObject({ endingAt: 5200, wakeAt: null });
      // It began after the last sign of life.
      const { jobs } = (await port.runs.load(job!.seq))!;
      expect(jobs.map(({ key, endingAt }) => [key, endingAt])).toEqual([
        ['done', 5200],
        ['main', 9000],
      ]);
      await port.boots.end(fence, 9500);
      expect(await port.boots.lastAlive(1000)).toBe(9500);
    });

    test('the open children of a run are those that have not ended', async () => {
      const { port } = await openFresh(open);
      const parent = await started(port);
      const child = (step: string) => started(port, { parentId: parent.id, parentStep: step });
      const [one, other] = [await child('main.a'), await child('main.b')];
      await port.runs.cancelIdle(other.seq, 7000);
      expect(await port.runs.openChildren(parent.id)).toEqual([one.id]);
      expect(await port.runs.openChildren(one.id)).toEqual([]);
    });

    test('the children of a run are listed with their steps, also after their end', async () => {
      const { port } = await openFresh(open);
      const parent = await started(port);
      const child = (step: string) => started(port, { parentId: parent.id, parentStep: step });
      const [two, one] = [await child('main.b'), await child('main.a')];
      await port.runs.cancelIdle(one.seq, 7000);
      const { workflowId } = one;
      const first = { id: one.id, status: 'cancelled', workflowId, parentStep: 'main.a' };
      const second = { id: two.id, status: 'queued', workflowId, parentStep: 'main.b' };
      expect(await port.runs.children(parent.id, 10)).toEqual([first, second]);
      expect(await port.runs.children(parent.id, 1)).toEqual([first]);
      expect(await port.runs.children(one.id, 10)).toEqual([]);
    });

    test('only a started run without an owner begins its clean-up', async () => {
      const { port } = await openFresh(open);
      const [fresh, held, parked] = [await started(port), await started(port), await started(port)];
      const fence = await boot(port);
      for (const run of [held, parked]) await port.runs.write(claim(run, fence));
      const running = { fence, status: 'running' as const };
      await port.runs.write(change(parked, running, { status: 'waiting', fence: null, startedAt: 6000 }));
      const begun = await Promise.all(
        [fresh, held, parked].map(({ seq }) => port.runs.beginCleanUp(seq, 7000)),
      );
      expect(begun).toEqual([false, false, true]);
      expect(await port.runs.find('acme', parked.id)).toMatchObject({
        status: 'cancelling',
        ending: 'cancelled',
      });
      expect((await port.queue.due(7000, 10)).map(({ id }) => id)).toEqual([parked.id]);
    });

    test('a crash counts for a run only if it had work in flight, and an orderly stop never counts', async () => {
      const { port } = await openFresh(open);
      const [working, evaluating, idle] = [await started(port), await started(port), await started(port)];
      const counts = async () =>
        Promise.all(
          [working, evaluating, idle].map(async ({ id }) => {
            const { crashes, kills } = (await port.runs.find('acme', id))!;
            return [crashes, kills];
          }),
        );
      for (const [how, expected] of [
        [
          'crash',
          [
            [1, 0],
            [1, 0],
            [0, 0],
          ],
        ],
        [
          'kill',
          [
            [1, 1],
            [1, 1],
            [0, 0],
          ],
        ],
        [
          'out of memory',
          [
            [2, 1],
            [2, 1],
            [0, 0],
          ],
        ],
        [
          'stop',
          [
            [2, 1],
            [2, 1],
            [0, 0],
          ],
        ],
      ] as const) {
        const fence = await boot(port);
        for (const run of [working, evaluating, idle]) {
          const found = (await port.runs.find('acme', run.id))!;
          await port.runs.write({ ...claim(found, fence), expect: { fence: null, status: found.status } });
        }
        const held = { fence, status: 'running' as const };
        await port.runs.write({ ...change(working, held, null), steps: [STEP] });
        const { crashes, kills } = (await port.runs.find('acme', evaluating.id))!;
        await port.runs.write(change(evaluating, held, { ...held, inFlight: true, crashes, kills }));
        await port.runs.write({
          ...change(idle, held, null),
          steps: [{ ...STEP, attemptAt: null }],
        });
        if (how === 'stop') await port.boots.stopping(fence);
        // Since the last word of that service the kernel has ended a process for want of memory.
        if (how === 'out of memory') await port.boots.renew(fence, { leaseUntil: 9000, oomKills: 6 });
        await boot(port, true, 5000, how === 'crash' || how === 'stop');
        await port.boots.interrupt(7000, 10, () => false);
        expect(await counts()).toEqual(expected);
        await port.boots.resume(7000, 10, () => false);
      }
    });

    test('ready runs are ordered by priority, then by their start', async () => {
      const { port } = await openFresh(open);
      const plain = [await started(port), await started(port)];
      const urgent = await started(port, { priority: 5 });
      const ids = (await port.queue.ready('acme', 10)).map(({ id }) => id);
      expect(ids).toEqual([urgent, ...plain].map(({ id }) => id));
    });

    test('a concurrency key admits its limit of runs and is passed on by priority', async () => {
      const { port } = await openFresh(open);
      const keyed = { concurrencyKey: 'acme\nk', concurrencyLimit: 2 };
      const runs = [];
      for (const priority of [0, 0, 0, 5]) runs.push(await started(port, { ...keyed, priority }));
      expect(runs.map(({ ready }) => ready)).toEqual([true, true, false, false]);
      const fence = await boot(port);
      await port.runs.write(claim(runs[0]!, fence));
      const end = change(
        runs[0]!,
        { fence, status: 'running' },
        { status: 'succeeded', ready: false, fence: null, finishedAt: 1 },
      );
      const { promoted } = await port.runs.write(end);
      expect(promoted.map(({ id }) => id)).toEqual([runs[3]!.id]);
      const idle = await port.runs.cancelIdle(runs[1]!.seq, 1);
      expect([idle.cancelled, idle.promoted.map(({ id }) => id)]).toEqual([true, [runs[2]!.id]]);
      expect(await port.runs.start(newRun(keyed), { ...OPTIONS, strategy: 'reject' })).toEqual({
        outcome: 'over',
        limit: 'key',
      });
    });

    test('a scheduled run acquires its concurrency key at its start time', async () => {
      const { port, reopen } = await openFresh(open);
      const keyed = { concurrencyKey: 'acme\nk', concurrencyLimit: 1 };
      const later = { ...keyed, createdAt: 1, runAt: 9000 };
      const [planned, refusing, superseding] = [
        await started(port, later),
        await started(port, later),
        await started(port, later),
      ];
      const error = { code: 'CONCURRENT_LIMIT_EXCEEDED', message: 'taken', details: { limit: 1 } };
      const release = ({ seq }: RunRecord, strategy?: StartOptions['strategy']) =>
        port.queue.release(seq, { at: 9000, strategy, refused: { status: 'failed', error } });
      const ready = { ready: true, reason: 'capacity', wakeAt: null };
      expect(await release(planned)).toMatchObject({ run: { id: planned.id, ...ready }, supersedes: [] });
      expect(await release(planned)).toBeUndefined();
      const refused = await release(refusing, 'reject');
      const end = { status: 'failed', ready: false, reason: null, wakeAt: null, finishedAt: 9000 };
      expect(refused).toMatchObject({ run: { ...end, error: JSON.stringify(error) }, supersedes: [] });
      expect((await port.runs.load(refusing.seq))?.run).toEqual(refused!.run);

      const waiting = await started(port, keyed);
      const taken = await release(superseding, 'cancel-running');
      expect(taken).toMatchObject({
        run: { ready: false, reason: 'concurrency' },
        supersedes: [waiting.id, planned.id],
      });
      // Whoever opens the file next knows whom it has to cancel, and none of them gets the key meanwhile.
      const again = await reopen();
      expect((await again.boots.leftToCancel()).toSorted()).toEqual([planned.id, waiting.id].toSorted());
      const { promoted } = await again.runs.cancelIdle(planned.seq, 9000);
      expect(promoted.map(({ id }) => id)).toEqual([superseding.id]);
      await again.runs.cancelIdle(waiting.seq, 9000);
      expect(await again.boots.leftToCancel()).toEqual([]);
    });

    test('the inbox keeps entries until they are consumed, and wakes waiting runs', async () => {
      const { port } = await openFresh(open);
      const run = await started(port);
      const fence = await boot(port);
      await port.runs.write(claim(run, fence));
      const entry = { kind: 'approval' as const, name: 'main.ok', payload: '{}', at: 7000 };
      const first = { once: true, most: 2, mostBytes: 100, by: fence };
      expect(await port.runs.deliver(run.seq, entry, first)).toMatchObject({ outcome: 'delivered', n: 1 });
      expect(await port.runs.deliver(run.seq, entry, { once: true, most: 2, mostBytes: 100 })).toEqual({
        outcome: 'taken',
      });
      const parked = { status: 'waiting', ready: false, fence: null } as const;
      const parks = change(run, { fence, status: 'running' }, parked);
      await port.runs.write({ ...parks, inboxSeen: 1 });
      expect(await port.queue.due(9000, 10)).toEqual([]);
      await port.runs.deliver(
        run.seq,
        { ...entry, kind: 'signal', name: 'go' },
        { once: false, most: 2, mostBytes: 100 },
      );
      expect((await port.queue.due(9000, 10)).map(({ id }) => id)).toEqual([run.id]);
      expect((await port.runs.load(run.seq))?.inbox.map(({ kind }) => kind)).toEqual(['approval', 'signal']);
      const signal = { ...entry, kind: 'signal' as const, name: 'go' };
      const options = { once: false, most: 1, mostBytes: 100 };
      expect(await port.runs.deliver(run.seq, signal, options)).toEqual({ outcome: 'full' });
      expect(await port.runs.deliver(run.seq, { ...entry, name: 'main.other' }, options)).toMatchObject({
        outcome: 'delivered',
      });
      const large = { once: false, most: 9, mostBytes: 6 };
      expect(await port.runs.deliver(run.seq, { ...signal, payload: '"ä"' }, large)).toMatchObject({
        outcome: 'delivered',
      });
      expect(await port.runs.deliver(run.seq, signal, large)).toEqual({ outcome: 'full' });
      const keyed = { once: false, most: 3, mostBytes: 100, repeat: { key: 'k', digest: 'd' } };
      expect((await port.runs.deliver(run.seq, signal, keyed)).outcome).toBe('delivered');
      expect(await port.runs.deliver(run.seq, signal, keyed)).toEqual({ outcome: 'repeated' });
      const other = { ...keyed, repeat: { key: 'k', digest: 'e' } };
      expect(await port.runs.deliver(run.seq, signal, other)).toEqual({ outcome: 'different' });
      await port.runs.cancelIdle(run.seq, 9000);
      expect(await port.runs.deliver(run.seq, entry, { once: true, most: 2, mostBytes: 100 })).toEqual({
        outcome: 'ended',
      });
      expect(await port.runs.deliver(run.seq, signal, keyed)).toEqual({ outcome: 'repeated' });
      // What its holder had not seen when it let go of the run wakes that at once: nobody else would.
      const late = await started(port);
      await port.runs.write(claim(late, fence));
      await port.runs.deliver(late.seq, signal, options);
      await port.runs.write(change(late, { fence, status: 'running' }, parked));
      expect((await port.queue.due(9000, 10)).map(({ id }) => id)).toEqual([late.id]);
    });

    test('an entry that arrives before a clean-up is parked wakes the clean-up', async () => {
      const { port } = await openFresh(open);
      const fence = await boot(port);
      const [told, parent, child, quiet] = [
        await started(port),
        await started(port),
        await started(port),
        await started(port),
      ];
      for (const run of [told, parent, child, quiet]) await port.runs.write(claim(run, fence));
      const running = { fence, status: 'running' as const };
      const decision = { kind: 'decision' as const, name: 'main.pay', payload: '{}', at: 7000 };
      await port.runs.deliver(told.seq, decision, { once: true, most: 2, mostBytes: 100 });
      const ended = { status: 'succeeded', ready: false, fence: null, finishedAt: 7000 } as const;
      await port.runs.write(change(child, running, ended));
      const parked = { status: 'cancelling', ending: 'cancelled', ready: false, fence: null } as const;
      const wait = JSON.stringify({ for: 'child', runId: child.id });
      const steps = [{ ...STEP, status: 'waiting' as const, wait }];
      await port.runs.write(change(told, running, parked));
      await port.runs.write({ ...change(parent, running, parked), steps });
      await port.runs.write(change(quiet, running, parked));
      const due = (await port.queue.due(9000, 10)).map(({ id }) => id);
      expect(due.toSorted()).toEqual([told.id, parent.id].toSorted());
    });

    test('due runs are found behind those of skipped tenants', async () => {
      const { port } = await openFresh(open);
      const wakeAt = { a: [100, 101, 102, 103], b: [104, 9001], c: [105], d: [9002] };
      for (const [tenantId, times] of Object.entries(wakeAt))
        for (const runAt of times) await started(port, { tenantId, runAt, createdAt: 1 });
      const due = async (limit: number, except?: string[]) =>
        (await port.queue.due(9000, limit, except)).map((run) => `${run.tenantId} ${run.wakeAt}`);
      expect(await due(3)).toEqual(['a 100', 'a 101', 'a 102']);
      expect(await due(3, ['a'])).toEqual(['b 104', 'c 105']);
      expect(await due(1, ['a', 'c', "o'clock"])).toEqual(['b 104']);
      expect(await due(3, ['a', 'b', 'c'])).toEqual([]);
      expect(await Promise.all([0, 100, 105, 9002].map((after) => port.queue.nextWake(after)))).toEqual([
        ...[100, 101, 9001, null],
      ]);
    });

    test('a page of a list may be short, and the next page continues', async () => {
      const { port } = await openFresh(open);
      for (let i = 0; i < 6; i++) await started(port, { workflowId: i % 2 ? 'a' : 'b' });
      await started(port, { tenantId: 'other', workflowId: 'a' });
      const first = await port.runs.list('acme', { kind: 'workflow', workflowId: 'a', limit: 2 });
      const heads = await port.runs.heads('acme', { kind: 'workflow', workflowId: 'a', limit: 2 });
      expect(heads.next).toBe(first.next);
      expect(first.runs).toMatchObject(heads.runs);
      expect(heads.runs[0]).not.toHaveProperty('input');
      const second = await port.runs.list('acme', {
        kind: 'workflow',
        workflowId: 'a',
        limit: 2,
        before: first.next!,
      });
      expect([first.runs.length, second.runs.length, second.next]).toEqual([2, 1, null]);
      expect((await port.runs.list('acme', { kind: 'job', limit: 9 })).runs).toEqual([]);
    });

    test('old finished runs are deleted with their jobs, steps and events, and others are kept', async () => {
      const { port } = await openFresh(open);
      const runs = [];
      for (let i = 0; i < 5; i++)
        runs.push(await started(port, { createdAt: 10 + i, input: JSON.stringify('x'.repeat(3000)) }));
      for (const run of runs.slice(0, 4)) await port.runs.cancelIdle(run.seq, run === runs[3] ? 900 : 100);
      let pruned = 0;
      for (let after: number | null = 0; after !== null; ) {
        const step = await port.prune({ finishedBefore: 500, after, limit: 2 });
        pruned += step.pruned;
        after = step.next;
      }
      expect(pruned).toBe(3);
      expect(await port.runs.find('acme', runs[0]!.id)).toBeUndefined();
      expect(await port.runs.events(runs[0]!.seq, 0, 10)).toEqual([]);
      for (const run of runs.slice(3)) expect((await port.runs.find('acme', run.id))?.input).toBe(run.input);
    });

    test('expired idempotency keys are deleted regardless of the number of scanned runs', async () => {
      const { port } = await openFresh(open);
      const keyed = (key: string, expiresAt: number) =>
        port.runs.start(newRun({ createdAt: 10 }), {
          ...OPTIONS,
          idempotency: { key, digest: 'd', expiresAt },
        });
      for (let i = 0; i < 5; i++) await keyed(`old${i}`, 100 + i);
      await keyed('new', 1000);
      expect(await port.pruneKeys({ now: 500, limit: 3 })).toBe(3);
      expect(await port.pruneKeys({ now: 500, limit: 3 })).toBe(2);
      expect((await keyed('new', 1000)).outcome).toBe('known');
      expect((await keyed('old0', 1000)).outcome).toBe('started');
    });

    test('definitions are deleted once no run has used them for long enough', async () => {
      const { port } = await openFresh(open);
      const day = 24 * 3600_000;
      const of = (hash: string) => ({
        definition: { hash, workflowId: 'nightly', body: `{"id":"${hash}"}` },
      });
      const runs = [];
      for (const [hash, createdAt] of [
        ['gone', 1],
        ['kept', 2],
        ['live', 3],
        ['used', 4],
        ['used', 5 * day],
      ] as const)
        runs.push(await started(port, { createdAt, definitionHash: hash }, of(hash)));
      // One ended long ago, one just now, one goes on; one was started of again since.
      for (const [index, at] of [
        [0, 100],
        [1, 9 * day],
        [3, 100],
      ] as const)
        await port.runs.cancelIdle(runs[index]!.seq, at);
      const looked = await port.prune({ finishedBefore: 4 * day, after: 0, limit: 99 });
      expect(looked).toMatchObject({ pruned: 2, next: null });
      expect(new Set(looked.inUse)).toEqual(new Set(['kept', 'live', 'used']));
      const options = { usedBefore: 4 * day, inUse: new Set(looked.inUse) };
      expect(await port.pruneDefinitions(options)).toBe(1);
      expect(await port.pruneDefinitions(options)).toBe(0);
      const left = await Promise.all(['gone', 'kept', 'live', 'used'].map((hash) => port.definition(hash)));
      expect(left.map((found) => found?.hash)).toEqual([undefined, 'kept', 'live', 'used']);
    });

    test('schedules keep their next time, their pause and their last run', async () => {
      const { port, reopen } = await openFresh(open);
      const plan = {
        id: 'n:1',
        tenantId: 'acme',
        workflowId: 'n',
        cron: '* * * * *',
        timezone: 'UTC',
        overlap: 'skip',
        catchUp: 'all',
        input: '{}',
        nextAt: 100,
      } as const;
      const owners = { workflows: new Set(['n']), plugins: new Set<string>() };
      await port.schedules.sync([plan, { ...plan, id: 'n:2', nextAt: 50 }], owners, 0);
      expect((await port.schedules.due(60)).map(({ id }) => id)).toEqual(['n:2']);
      await port.schedules.served('n:2', { nextAt: 200, lastAt: 50, lastRunId: 'run_1' });
      await port.schedules.setPaused('n:1', true, null);
      const again = await reopen();
      const same = [
        { ...plan, nextAt: 999 },
        { ...plan, id: 'n:2', nextAt: 999 },
      ];
      await again.schedules.sync(same, owners, 0);
      expect(await again.schedules.list('acme')).toMatchObject([
        { id: 'n:1', paused: true, nextAt: null },
        { id: 'n:2', nextAt: 200, lastAt: 50, lastRunId: 'run_1' },
      ]);
      // The same plan under the id that it was given.
      const renamed = [
        { ...plan, id: 'n:own', nextAt: 999 },
        { ...plan, id: 'n:2', cron: '0 * * * *', nextAt: 777 },
      ];
      await again.schedules.sync(renamed, owners, 0);
      expect(await again.schedules.list('acme')).toMatchObject([
        { id: 'n:2', nextAt: 777 },
        { id: 'n:own', paused: true, nextAt: null },
      ]);
      expect(await again.schedules.nextAt(776)).toBe(777);
      // What is due waits for its turn, and is no reason to look again at once.
      expect(await again.schedules.nextAt(777)).toBeNull();
    });

    test('a schedule stays active while a live node has it, and keeps its pause while its node is down', async () => {
      const { port } = await openFresh(open);
      const plan = (id: string) => ({
        ...{ id, tenantId: 'acme', workflowId: 'n', cron: '* * * * *', timezone: 'UTC' },
        ...({ overlap: 'skip', catchUp: 'all', input: '{}', nextAt: 100 } as const),
      });
      const owners = { workflows: new Set(['n']), plugins: new Set<string>() };
      const join = (instance: string) =>
        port.members.join({
          ...{ kind: 'workflow' as const, instance, version: '1.0.0', release: null },
          ...{ keys: null, leaseMs: 10_000, isSole: false },
        });
      const ids = async () => (await port.schedules.list('acme')).map(({ id }) => id);
      const [a, b] = [
        { instance: 'a', fence: await join('a'), release: 'r1' },
        { instance: 'b', fence: await join('b'), release: 'r2' },
      ];
      await port.schedules.sync([plan('n:1'), plan('n:2')], owners, 0, a);
      await port.schedules.setPaused('n:1', true, null);
      await port.schedules.sync([plan('n:2'), { ...plan('n:3'), cron: '0 * * * *' }], owners, 0, b);
      expect(await ids()).toEqual(['n:1', 'n:2', 'n:3']);
      await port.members.leave(a.fence);
      await port.schedules.sync([plan('n:2'), { ...plan('n:3'), cron: '0 * * * *' }], owners, 0, b);
      expect(await ids()).toEqual(['n:2', 'n:3']);
      const again = { instance: 'a', fence: await join('a'), release: 'r1' };
      await port.schedules.sync([plan('n:1'), plan('n:2')], owners, 0, again);
      expect(await port.schedules.find('acme', 'n:1')).toMatchObject({ paused: true });
      await port.schedules.sync([plan('n:2')], owners, 0, again);
      expect(await ids()).toEqual(['n:2', 'n:3']);
      expect(await port.schedules.find('acme', 'n:1')).toBeUndefined();
    });

    test('a restarted node of an older release does not undo the plan of a newer one, until that is gone', async () => {
      const { port } = await openFresh(open);
      const plan = (cron: string) => ({
        ...{ id: 'n:1', tenantId: 'acme', workflowId: 'n', cron, timezone: 'UTC' },
        ...({ overlap: 'skip', catchUp: 'all', input: '{}', nextAt: 100 } as const),
      });
      const owners = { workflows: new Set(['n']), plugins: new Set<string>() };
      const sync = async (instance: string, release: string, cron: string): Promise<number> => {
        const fence = await port.members.join({
          ...{ kind: 'workflow' as const, instance, version: '1.0.0', release: null },
          ...{ keys: null, leaseMs: 10_000, isSole: false },
        });
        await port.schedules.sync([plan(cron)], owners, 0, { instance, fence, release });
        return fence;
      };
      const stored = async () => (await port.schedules.find('acme', 'n:1'))!.cron;
      await sync('a', 'before', '0 * * * *');
      await sync('b', 'before', '0 * * * *');
      const upgraded = await sync('b', 'after', '30 * * * *');
      expect(await stored()).toBe('30 * * * *');
      await sync('a', 'before', '0 * * * *');
      expect(await stored()).toBe('30 * * * *');
      await port.members.leave(upgraded);
      await sync('a', 'before', '0 * * * *');
      expect(await stored()).toBe('0 * * * *');
    });
  });
}
