import { describe, expect, test } from 'vitest';
import {
  type CallInput,
  cancelRuns,
  listRuns,
  type ReplyOf,
  type RunId,
  rerunRun,
  rerunRuns,
} from '../../../src/contracts/index.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { setUpLedger } from './support/kept-ledger.ts';
import { LEDGER_CONFIG, type Ledger } from './support/ledger.ts';
import { openNodes } from './support/nodes.ts';
import type { DaemonProcess } from './support/process.ts';
import { cel } from './support/workflow.ts';

interface Setting {
  ledger: Ledger;
  start(): Promise<DaemonProcess>;
}

const STORES: Record<string, { missing?: string; open(config?: Record<string, unknown>): Promise<Setting> }> =
  {
    SQLite: {
      async open(config = {}) {
        const { ledger, start } = await setUpLedger({ ...LEDGER_CONFIG, ...config });
        return { ledger, start: () => start() };
      },
    },
    PostgreSQL: {
      ...(POSTGRES_PROGRAMS ? {} : { missing: POSTGRES_MISSING }),
      async open(config = {}) {
        const nodes = await openNodes({ config });
        return { ledger: nodes.ledger, start: () => nodes.start('a') };
      },
    },
  };

type Body = CallInput<typeof rerunRuns>['body'];
const POLL = { timeout: 30_000, interval: 20 };

/** A run that fails, and when run again posts to the ledger. */
const failing = (ledger: Ledger, id = 'failing') => ({
  id,
  steps: [
    { id: 'post', uses: 'http', with: { method: 'PUT', url: `${ledger.url}/post/${cel('input.n')}` } },
    { id: 'fail', uses: 'http', with: { url: `${ledger.url}/broken` } },
  ],
});

async function startFailed({ ledger }: Setting, daemon: DaemonProcess, count: number): Promise<string[]> {
  ledger.answer('broken', (_, response) => response.writeHead(400).end());
  const ids: string[] = [];
  while (ids.length < count) {
    ids.push(await daemon.start(failing(ledger), { input: { n: ids.length } }));
    // A tenant may be limited to this many unfinished runs.
    if (ids.length % 4 === 0 || ids.length === count)
      await expect.poll(() => countOf(daemon, 'failed'), POLL).toBe(ids.length);
  }
  return ids;
}

async function countOf(daemon: DaemonProcess, status: 'failed' | 'waiting' | 'cancelled'): Promise<number> {
  return (await daemon.call(listRuns, { query: { status, limit: 1000 } })).items.length;
}

const rerun = (daemon: DaemonProcess, body: Body) => daemon.call(rerunRuns, { body });

/** Calls until nothing is left, as clients do. Returns all answers. */
async function rerunAll(daemon: DaemonProcess, body: Body): Promise<Array<ReplyOf<typeof rerunRuns>>> {
  const replies = [];
  for (let cursor: string | null | undefined = body.cursor; cursor !== null; ) {
    replies.push(await rerun(daemon, { ...body, ...(cursor === undefined ? {} : { cursor }) }));
    cursor = replies.at(-1)!.nextCursor;
  }
  return replies;
}

/** How often each of the runs was run again. */
async function rerunsOf(daemon: DaemonProcess, ids: readonly string[]): Promise<number[]> {
  const { items } = await daemon.call(listRuns, { query: { limit: 1000 } });
  return ids.map((id) => items.filter(({ rerunOf }) => rerunOf === id).length);
}

const filter = { status: 'failed' } as const;

for (const [name, { missing, open }] of Object.entries(STORES))
  describe.skipIf(missing)(missing ?? `bulk actions on ${name}`, { timeout: 120_000 }, () => {
    test('a dry run counts and changes nothing, and pins what the reruns include', async () => {
      const setting = await open();
      const daemon = await setting.start();
      const ids = await startFailed(setting, daemon, 12);
      const dry = await rerun(daemon, { filter, dryRun: true });
      expect(dry.matching).toMatchObject({ count: 12, isComplete: true });
      expect(dry.matching!.sample.map(({ id }) => id)).toEqual(ids.toReversed().slice(0, 10));
      expect(dry.items).toEqual([]);
      expect(await rerunsOf(daemon, ids)).toEqual(ids.map(() => 0));

      // Runs that are started or fail after the dry run are not part of it, those of the reruns included.
      const later = await daemon.start(failing(setting.ledger), { input: { n: 99 } });
      await expect.poll(() => countOf(daemon, 'failed'), POLL).toBe(13);
      const replies = await rerunAll(daemon, { filter, limit: 5, cursor: dry.nextCursor! });
      expect(replies.map(({ items }) => items.length)).toEqual([5, 5, 2]);
      expect(await rerunsOf(daemon, [...ids, later])).toEqual([...ids.map(() => 1), 0]);
    });

    test('a call that is repeated with its cursor starts nothing twice', async () => {
      const setting = await open();
      const daemon = await setting.start();
      const ids = await startFailed(setting, daemon, 6);
      const { nextCursor } = await rerun(daemon, { filter, dryRun: true });
      const body = { filter, cursor: nextCursor! };
      const [first, second] = await Promise.all([rerun(daemon, body), rerun(daemon, body)]);
      expect(second.items).toEqual(first.items);
      expect((await rerun(daemon, body)).items).toEqual(first.items);
      expect(await rerunsOf(daemon, ids)).toEqual(ids.map(() => 1));
    });

    test('killed in the midst, a bulk rerun continues with its cursor: nothing is lost or repeated', async () => {
      const setting = await open();
      let daemon = await setting.start();
      const ids = await startFailed(setting, daemon, 30);
      const { nextCursor } = await rerun(daemon, { filter, dryRun: true });
      const started = async () => (await rerunsOf(daemon, ids)).filter((count) => count > 0).length;
      let kills = 0;
      for (let cursor = nextCursor; cursor !== null; ) {
        const before = await started();
        let reply: ReplyOf<typeof rerunRuns> | undefined;
        const call = rerun(daemon, { filter, limit: 10, cursor }).then(
          (answer) => (reply = answer),
          () => undefined,
        );
        if (kills < 3) {
          await expect
            .poll(async () => reply !== undefined || (await started()) > before, { ...POLL, interval: 1 })
            .toBe(true);
          await daemon.kill();
          kills++;
          daemon = await setting.start();
        }
        await call;
        if (reply) cursor = reply.nextCursor;
      }
      expect(await rerunsOf(daemon, ids)).toEqual(ids.map(() => 1));
      // Every run that was started again runs to its end.
      await expect.poll(() => countOf(daemon, 'failed'), POLL).toBe(60);
    });

    test('a rerun from a step with another input survives a kill after its answer', async () => {
      const setting = await open();
      const daemon = await setting.start();
      const [id] = await startFailed(setting, daemon, 1);
      setting.ledger.answer('broken', (_, response) => response.end('{}'));
      const body = { fromStep: 'main.fail', input: { n: 7 } };
      const { run } = await daemon.call(rerunRun, { params: { runId: id as RunId }, body });
      await daemon.kill();
      const next = await setting.start();
      await expect.poll(async () => (await next.run(run.id)).status, POLL).toBe('succeeded');
      expect((await next.run(run.id)).input).toEqual({ n: 7 });
      // The result of the first step was reused.
      expect([setting.ledger.count('post/0'), setting.ledger.count('post/7')]).toEqual([1, 0]);
    });

    test('many runs are cancelled by a filter or by their ids', async () => {
      const setting = await open();
      const daemon = await setting.start();
      const waiting = (id: string) => daemon.start({ id, steps: [{ uses: 'approval' }] });
      const ids: string[] = [];
      for (let n = 0; n < 7; n++) ids.push(await waiting(n < 5 ? 'these' : 'others'));
      await expect.poll(() => countOf(daemon, 'waiting'), POLL).toBe(7);
      const body = { filter: { workflowId: 'these' } };
      const dry = await daemon.call(cancelRuns, { body: { ...body, dryRun: true } });
      expect([dry.matching?.count, await countOf(daemon, 'waiting')]).toEqual([5, 7]);
      const late = await waiting('these');
      const done = await daemon.call(cancelRuns, { body: { ...body, cursor: dry.nextCursor! } });
      expect([done.items.length, done.refused, done.nextCursor]).toEqual([5, [], null]);
      await expect.poll(() => countOf(daemon, 'cancelled'), POLL).toBe(5);

      const runIds = [late, ids[0]!, 'run_unknown'] as RunId[];
      const chosen = await daemon.call(cancelRuns, { body: { runIds } });
      expect(chosen.items.map(({ runId }) => runId)).toEqual([late, ids[0]]);
      expect(chosen.refused).toMatchObject([{ error: { code: 'WORKFLOW_RUN_NOT_FOUND' } }]);
    });

    test('a limit of the tenant pauses a bulk rerun at the run that it refuses', async () => {
      const setting = await open({ tenants: { default: { concurrentRuns: 4 } } });
      const daemon = await setting.start();
      const ids = await startFailed(setting, daemon, 9);
      let isHeld = true;
      const held: Array<() => void> = [];
      setting.ledger.answer('post', (_, response) => {
        const answer = () => response.end('{}');
        if (isHeld) held.push(answer);
        else answer();
      });
      const { nextCursor } = await rerun(daemon, { filter, dryRun: true });
      const first = await rerun(daemon, { filter, cursor: nextCursor! });
      expect(first).toMatchObject({ refused: [], paused: { code: 'CONCURRENT_LIMIT_EXCEEDED' } });
      expect(first.items.length).toBeLessThanOrEqual(4);
      isHeld = false;
      for (const answer of held) answer();
      await rerunAll(daemon, { filter, cursor: first.nextCursor! });
      expect(await rerunsOf(daemon, ids)).toEqual(ids.map(() => 1));
    });

    test('child runs and unfinished runs are left out, and a foreign cursor is refused', async () => {
      const setting = await open();
      const daemon = await setting.start();
      const child = { id: 'child', uses: 'workflow', with: { id: 'missing' } };
      await daemon.start({ id: 'parent', steps: [child] });
      await daemon.start({ id: 'waits', steps: [{ uses: 'approval' }] });
      await expect.poll(() => countOf(daemon, 'waiting'), POLL).toBe(1);
      await expect.poll(() => countOf(daemon, 'failed'), POLL).toBe(1);
      const dry = await rerun(daemon, { filter: {}, dryRun: true });
      expect(dry.matching!.sample.map(({ workflowId }) => workflowId)).toEqual(['parent']);
      const cursor = dry.nextCursor!;
      for (const body of [
        { filter: { status: 'failed' as const }, cursor },
        { filter: {}, cursor: 'nonsense' },
        { filter: {}, runIds: ['run_a' as RunId] },
      ])
        await expect(rerun(daemon, body)).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
      await expect(daemon.call(cancelRuns, { body: { filter: {}, cursor } })).rejects.toMatchObject({
        message: expect.stringContaining('belongs to another action'),
      });
    });
  });
