import { describe, expect, test } from 'vitest';
import { days, hours } from '../../../src/kit/time/duration.ts';
import type { RunFilter, WorkflowStore } from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh } from './driver.ts';
import { boot, change, claim, started } from './workflow.ts';

const HOUR = hours(1);
/** Start of an hour. */
const NOON = 1_900_000_800_000 - (1_900_000_800_000 % HOUR);

/** Search of runs by time, label and text, and counts per hour. @spec docs/workflows.md "Find runs" */
export function describeRunSearch(name: string, open: OpenDriver<WorkflowStore>): void {
  describe(`run search: ${name}`, () => {
    const ids = async (store: WorkflowStore, filter: Partial<RunFilter>): Promise<string[]> => {
      const { runs } = await store.runs.list('acme', { kind: 'workflow', limit: 100, ...filter });
      return runs.map(({ id }) => id);
    };
    const labelled = (labels: Record<string, string>) => ({ labels: JSON.stringify(labels) });

    test('a time range includes its start and excludes its end, also after the clock was set back', async () => {
      const { port } = await openFresh(open);
      const at = async (createdAt: number) => (await started(port, { createdAt })).id;
      const first = await at(NOON);
      const late = await at(NOON + 3 * HOUR);
      const back = await at(NOON + 1);
      const next = await at(NOON + HOUR);
      await started(port, { createdAt: NOON, tenantId: 'other' });
      expect(await ids(port, { from: NOON, to: NOON + HOUR })).toEqual([back, first]);
      expect(await ids(port, { from: NOON + 1 })).toEqual([next, back, late]);
      expect(await ids(port, { to: NOON + 1 })).toEqual([first]);
      expect(await ids(port, { from: NOON + 4 * HOUR })).toEqual([]);
      expect(await ids(port, { from: NOON + 10, to: NOON + 20 })).toEqual([]);
    });

    test('several labels find the runs that have all of them, with other filters and in pages', async () => {
      const { port } = await openFresh(open);
      const both = (await started(port, labelled({ customer: 'acme', env: 'a:b' }))).id;
      const one = (await started(port, labelled({ customer: 'acme' }))).id;
      const other = (await started(port, { ...labelled({ customer: 'acme' }), workflowId: 'daily' })).id;
      await started(port, labelled({ customer: 'ACME' }));
      await started(port, { ...labelled({ customer: 'acme' }), tenantId: 'other' });
      await started(port);
      expect(await ids(port, { labels: ['customer:acme'] })).toEqual([other, one, both]);
      expect(await ids(port, { labels: ['customer:acme', 'env:a:b'] })).toEqual([both]);
      expect(await ids(port, { labels: ['customer:acme', 'customer:x'] })).toEqual([]);
      expect(await ids(port, { labels: ['customer:acme'], workflowId: 'nightly' })).toEqual([one, both]);
      expect(await ids(port, { labels: ['customer:acme'], status: ['failed'] })).toEqual([]);
      const filter = { kind: 'workflow', labels: ['customer:acme'], limit: 2 } as const;
      const first = await port.runs.list('acme', filter);
      const second = await port.runs.list('acme', { ...filter, before: first.next! });
      expect([first.runs.length, second.runs.map(({ id }) => id), second.next]).toEqual([2, [both], null]);
      expect(first.runs[0]!.labels).toBe('{"customer":"acme"}');
    });

    test('several statuses find the runs that have one of them, in the order of the list and in pages', async () => {
      const { port } = await openFresh(open);
      const fence = await boot(port);
      const end = async (status: 'failed' | 'timed_out' | 'succeeded'): Promise<string> => {
        const run = await started(port);
        await port.runs.write(claim(run, fence));
        const progress = { status, fence: null, startedAt: 1, finishedAt: NOON };
        await port.runs.write(change(run, { fence, status: 'running' }, progress));
        return run.id;
      };
      const failed = await end('failed');
      const queued = (await started(port)).id;
      const late = await end('timed_out');
      const done = await end('succeeded');
      const cancelled = await started(port);
      await port.runs.cancelIdle(cancelled.seq, NOON);
      await started(port, { tenantId: 'other' });
      expect(await ids(port, { status: ['failed', 'timed_out'] })).toEqual([late, failed]);
      expect(await ids(port, { status: ['queued', 'waiting'] })).toEqual([queued]);
      expect(await ids(port, { status: ['timed_out', 'queued', 'failed'] })).toEqual([late, queued, failed]);
      expect(await ids(port, { status: ['succeeded', 'queued'] })).toEqual([done, queued]);
      const filter = { kind: 'workflow', status: ['failed', 'queued', 'timed_out'], limit: 2 } as const;
      const first = await port.runs.list('acme', filter);
      const second = await port.runs.list('acme', { ...filter, before: first.next! });
      const pages = [first, second].map(({ runs }) => runs.map(({ id }) => id));
      expect([pages, second.next]).toEqual([[[late, queued], [failed]], null]);
    });

    test('paused runs are found, except those that have ended or are being cancelled', async () => {
      const { port } = await openFresh(open);
      const fence = await boot(port);
      await started(port);
      const [ended, cancelling] = [await started(port), await started(port)];
      const paused = await started(port, labelled({ customer: 'acme' }));
      await port.runs.write(claim(cancelling, fence));
      for (const { seq } of [ended, cancelling, paused]) await port.pauses.pauseRun(seq, 1);
      await port.runs.cancelIdle(ended.seq, NOON);
      const clean = change(
        cancelling,
        { fence, status: 'running' },
        { status: 'cancelling', fence, startedAt: 1 },
      );
      await port.runs.write(clean);
      await port.pauses.pauseWorkflow({ tenantId: 'acme', workflowId: 'daily' });
      const queued = await started(port, { workflowId: 'daily' });
      expect(await ids(port, { paused: true })).toEqual([queued.id, paused.id]);
      expect(await ids(port, { paused: true, workflowId: 'nightly' })).toEqual([paused.id]);
      expect(await ids(port, { paused: true, labels: ['customer:acme'] })).toEqual([paused.id]);
      expect(await ids(port, { paused: true, status: ['waiting'] })).toEqual([]);
    });

    test('a text is found in small and large inputs, and an id finds its run', async () => {
      const { port } = await openFresh(open);
      const small = await started(port, { input: '{"name":"Zoë \\"Q\\""}' });
      const large = await started(port, { input: JSON.stringify({ text: `${'x'.repeat(5000)}needle` }) });
      const mentions = await started(port, { input: JSON.stringify({ of: small.id }) });
      await started(port, { input: '{"name":"needle"}', tenantId: 'other' });
      expect(await ids(port, { search: 'needle' })).toEqual([large.id]);
      expect(await ids(port, { search: 'Zoë "Q"' })).toEqual([small.id]);
      expect(await ids(port, { search: '"name":' })).toEqual([small.id]);
      expect(await ids(port, { search: small.id })).toEqual([small.id]);
      expect(await ids(port, { search: small.id.slice(0, -1) })).toEqual([mentions.id]);
      expect(await ids(port, { search: 'Needle' })).toEqual([]);
      expect(await ids(port, { search: '@1' })).toEqual([]);
      expect(await ids(port, { search: 'a\0b' })).toEqual([]);
    });

    test('a search that finds little reads a limited part at a time, and its cursor continues', async () => {
      const { port } = await openFresh(open);
      const input = JSON.stringify('x'.repeat(1024 * 1024));
      const wanted = await started(port, { input: '"needle"' });
      for (let i = 0; i < 40; i++) await started(port, { input });
      const filter = { kind: 'workflow', search: 'needle', limit: 10 } as const;
      const first = await port.runs.list('acme', filter);
      expect([first.runs, first.next]).toEqual([[], expect.any(Number)]);
      const second = await port.runs.list('acme', { ...filter, before: first.next! });
      expect([second.runs.map(({ id }) => id), second.next]).toEqual([[wanted.id], null]);
    });

    test('runs are counted in the hour of their creation, by how they ended', async () => {
      const { port } = await openFresh(open);
      const fence = await boot(port);
      const end = async (status: 'succeeded' | 'timed_out', createdAt: number): Promise<void> => {
        const run = await started(port, { createdAt });
        await port.runs.write(claim(run, fence));
        const progress = { status, fence: null, startedAt: 1, finishedAt: NOON + 9 * HOUR };
        await port.runs.write(change(run, { fence, status: 'running' }, progress));
      };
      await end('succeeded', NOON);
      await end('timed_out', NOON + HOUR - 1);
      const idle = await started(port, { createdAt: NOON });
      await port.runs.cancelIdle(idle.seq, NOON);
      await started(port, { createdAt: NOON + 2 * HOUR });
      await started(port, { createdAt: NOON, kind: 'job' });
      await started(port, { createdAt: NOON, tenantId: 'other' });
      const range = { from: NOON, to: NOON + 3 * HOUR };
      const counts = [
        { hour: NOON, started: 3, succeeded: 1, failed: 1, cancelled: 1 },
        { hour: NOON + 2 * HOUR, started: 1, succeeded: 0, failed: 0, cancelled: 0 },
      ];
      expect(await port.runs.countByHour('acme', range)).toEqual(counts);
      await port.pruneKeys({ now: NOON, limit: 10 });
      expect(await port.runs.countByHour('acme', range)).toEqual(counts);
      expect(await port.runs.countByHour('acme', { from: NOON + HOUR, to: NOON + 2 * HOUR })).toEqual([]);
    });

    test('labels and old counts are deleted with their runs, and counts of kept runs are not', async () => {
      const { port } = await openFresh(open);
      const gone = await started(port, { ...labelled({ a: 'b' }), createdAt: NOON });
      const kept = await started(port, { createdAt: NOON + HOUR });
      await port.runs.cancelIdle(gone.seq, NOON);
      await port.prune({ finishedBefore: NOON + 1, after: 0, limit: 10 });
      const later = NOON + days(60);
      await port.pruneKeys({ now: later, limit: 10 });
      await port.pruneKeys({ now: later, limit: 10 });
      const left = await port.runs.countByHour('acme', { from: 0, to: later });
      expect(left.map(({ hour }) => hour)).toEqual([NOON + HOUR]);
      expect(await ids(port, { from: NOON })).toEqual([kept.id]);
      expect(await ids(port, { labels: ['a:b'] })).toEqual([]);
    });
  });
}
