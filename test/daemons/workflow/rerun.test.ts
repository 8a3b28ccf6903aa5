import { describe, expect, test } from 'vitest';
import {
  getJob,
  listRuns,
  previewRerun,
  type RunId,
  rerunRun,
  submitJob,
} from '../../../src/contracts/index.ts';
import { startCode } from './support/code.ts';
import { LEDGER_CONFIG, startLedger } from './support/ledger.ts';
import { cel, startWorkflow, type TestWorkflow } from './support/workflow.ts';

const who = { tenantId: 'default', hostId: 'x', requestId: 'r', traceId: 't' };

async function setUp() {
  const ledger = await startLedger();
  const it = await startWorkflow({ config: LEDGER_CONFIG });
  const call = (name: string) => ({ id: name, uses: 'http', with: { url: `${ledger.url}/${name}` } });
  const counts = (...names: string[]) => names.map((name) => ledger.count(name));
  return { ledger, it, call, counts };
}

test('jobs that failed beside the chosen one are run again, and so is what was skipped for want of them', async () => {
  const { ledger, it, call, counts } = await setUp();
  for (const name of ['b2', 'c2'])
    ledger.answer(name, (_, response, nth) => response.writeHead(nth === 1 ? 400 : 200).end());
  const id = await it.start({
    jobs: {
      a: { steps: [call('a')] },
      b: { steps: [call('b1'), call('b2'), call('b3')] },
      c: { steps: [call('c1'), call('c2')] },
      afterC: { needs: 'c', steps: [call('d')] },
    },
  });
  await it.until(id, 'failed');
  const again = await it.services.reruns.rerun('default', id, { fromStep: 'b.b2' }, who);
  await it.until(again.id, 'succeeded');
  // What had succeeded before a failure is not done twice, in either job.
  expect(counts('a', 'b1', 'b2', 'b3', 'c1', 'c2', 'd')).toEqual([1, 1, 2, 1, 1, 2, 1]);
});

test('a job that may fail is not run again for having failed, nor what went on after it', async () => {
  const { ledger, it, call, counts } = await setUp();
  ledger.answer('may', (_, response) => response.writeHead(400).end());
  ledger.answer('must', (_, response, nth) => response.writeHead(nth === 1 ? 400 : 200).end());
  const id = await it.start({
    jobs: {
      may: { continueOnError: true, steps: [call('may')] },
      after: { needs: 'may', steps: [call('after')] },
      must: { steps: [call('must')] },
    },
  });
  await it.until(id, 'failed');
  await expect.poll(() => counts('may', 'after')).toEqual([1, 1]);
  const again = await it.services.reruns.rerun('default', id, { fromStep: 'must.must' }, who);
  await it.until(again.id, 'succeeded');
  expect(counts('may', 'after', 'must')).toEqual([1, 1, 2]);
});

test('of a failed matrix every combination goes on where it stood', async () => {
  const { ledger, it, counts } = await setUp();
  ledger.answer('two', (_, response, nth) => response.writeHead(nth === 1 ? 400 : 200).end());
  const call = (name: string) => ({
    id: name,
    uses: 'http',
    with: { url: `${ledger.url}/${name}/${cel('matrix.v')}` },
  });
  const matrix = { v: ['x', 'y'] };
  const id = await it.start({
    jobs: { m: { strategy: { matrix, failFast: false }, steps: [call('one'), call('two'), call('three')] } },
  });
  await it.until(id, 'failed');
  const again = await it.services.reruns.rerun('default', id, { fromStep: 'm:1.two' }, who);
  await it.until(again.id, 'succeeded');
  expect(counts('one/x', 'one/y', 'two/x', 'two/y', 'three/x', 'three/y')).toEqual([1, 1, 2, 2, 1, 1]);
});

test('a job that is run again is a job', async () => {
  const it = await startCode("export const count = () => 'done';", {
    workflows: [],
    jobs: [{ id: 'count', handler: 'flows.js#count' }],
  });
  const { job } = await it.call(submitJob, { body: { handler: 'code/count' } as never });
  await it.until(job.id, 'succeeded');
  const again = await it.services.reruns.rerun('default', job.id, {}, who);
  await it.until(again.id, 'succeeded');
  const found = await it.call(getJob, { params: { jobId: again.id as never } });
  expect(found).toMatchObject({ handler: 'code/count', result: 'done' });
});

describe('with another input', () => {
  const graph = (call: (name: string) => object) => ({
    inputs: { type: 'object', properties: { order: { type: 'integer' } }, required: ['order'] },
    jobs: {
      a: { steps: [call('a')] },
      beside: { steps: [call('beside')] },
      b: { needs: 'a', steps: [call('b1'), call('b2'), call('b3')] },
      after: { needs: 'b', steps: [call('after')] },
    },
  });

  async function failedRun() {
    const { ledger, it, counts } = await setUp();
    ledger.answer('b2', (_, response, nth) => response.writeHead(nth === 1 ? 400 : 200).end());
    const call = (name: string) => ({
      id: name,
      uses: 'http',
      with: { method: 'PUT', url: `${ledger.url}/${name}`, body: cel('input') },
    });
    const id = await it.start(graph(call), { input: { order: 1 } });
    await it.until(id, 'failed');
    await expect.poll(() => counts('beside')).toEqual([1]);
    return { ledger, it, counts, id };
  }

  test('only results that the chosen step depends on are reused, as the preview said', async () => {
    const { ledger, it, counts, id } = await failedRun();
    const body = { fromStep: 'b.b2', input: { order: 2 } };
    const preview = await it.call(previewRerun, { params: { runId: id as RunId }, body });
    expect(preview.reused.map((step) => step.id)).toEqual(['a.a', 'b.b1']);
    expect(preview.repeated.map((step) => step.id)).toEqual(['beside.beside', 'b.b2', 'b.b3', 'after.after']);
    expect([preview.input, preview.notes]).toEqual([{ order: 2 }, []]);
    expect((await it.call(listRuns)).items).toHaveLength(1);

    const { run } = await it.call(rerunRun, { params: { runId: id as RunId }, body });
    await it.until(run.id, 'succeeded');
    expect(counts('a', 'beside', 'b1', 'b2', 'b3', 'after')).toEqual([1, 2, 1, 2, 1, 1]);
    expect(ledger.entries.find(({ name }) => name === 'after')?.body).toBe('{"order":2}');
    expect((await it.run(run.id)).input).toEqual({ order: 2 });
    expect((await it.run(id)).input).toEqual({ order: 1 });
  });

  test('the preview refuses what the rerun refuses', async () => {
    const { it, id } = await failedRun();
    const running = await it.start({ steps: [{ uses: 'approval' }] });
    await it.until(running, 'waiting');
    const refused = [
      [id, { fromStep: 'b.none' }, 'VALIDATION_ERROR', 'has no step "b.none"'],
      [id, { fromStep: 'b.b3' }, 'VALIDATION_ERROR', '"b.b2" before it did not succeed'],
      [id, { input: { order: 'many' } }, 'VALIDATION_ERROR', 'order'],
      [running, {}, 'CONFLICT', 'once it has ended'],
      ['run_pruned', {}, 'WORKFLOW_RUN_NOT_FOUND', 'run_pruned'],
    ] as const;
    for (const [runId, body, code, message] of refused)
      for (const endpoint of [previewRerun, rerunRun])
        await expect(it.call(endpoint, { params: { runId: runId as RunId }, body })).rejects.toMatchObject({
          code,
          message: expect.stringContaining(message),
        });
  });

  describe('an approval counts only for the input for which it was given', () => {
    const FAIL = { id: 'refund', uses: 'http', with: { url: 'http://127.0.0.1:1/' } };
    const ASK = { id: 'ask', uses: 'approval', with: { approvers: { roles: ['admin'] } } };

    async function expectRefused(it: TestWorkflow, id: string, fromStep: string, approval: string) {
      const body = { fromStep, input: { order: 2 } };
      for (const endpoint of [previewRerun, rerunRun])
        await expect(it.call(endpoint, { params: { runId: id as RunId }, body })).rejects.toMatchObject({
          code: 'VALIDATION_ERROR',
          message: expect.stringContaining(`Run again from "${approval}" or an earlier step.`),
        });
    }

    async function approve(it: TestWorkflow, id: string, stepId: string) {
      await it.until(id, 'waiting');
      await it.services.runs.approve(
        'default',
        id,
        stepId,
        { approved: true, by: 'ada', comment: null },
        'admin',
      );
      await it.until(id, 'failed');
    }

    test('a later step of its job', async () => {
      const it = await startWorkflow();
      const id = await it.start({ steps: [ASK, FAIL] }, { input: { order: 1 } });
      await approve(it, id, 'main.ask');
      await expectRefused(it, id, 'main.refund', 'main.ask');
      const same = await it.services.reruns.rerun('default', id, { fromStep: 'main.refund' }, who);
      await it.until(same.id, 'failed');
      const request = { fromStep: 'main.ask', input: { order: 2 } };
      const anew = await it.services.reruns.rerun('default', id, request, who);
      await it.until(anew.id, 'waiting');
    });

    test('a step of a job that needs its job', async () => {
      const it = await startWorkflow();
      const id = await it.start(
        { jobs: { first: { steps: [ASK] }, main: { needs: 'first', steps: [FAIL] } } },
        { input: { order: 1 } },
      );
      await approve(it, id, 'first.ask');
      await expectRefused(it, id, 'main.refund', 'first.ask');
    });

    test('a step or job that the earlier input skipped', async () => {
      const it = await startWorkflow();
      const step = await it.start(
        { steps: [{ ...ASK, if: cel('input.order > 1') }, FAIL] },
        { input: { order: 1 } },
      );
      await it.until(step, 'failed');
      await expectRefused(it, step, 'main.refund', 'main.ask');
      const job = await it.start(
        {
          jobs: {
            first: { if: cel('input.order > 1'), steps: [ASK] },
            main: { needs: 'first', if: cel('always()'), steps: [FAIL] },
          },
        },
        { input: { order: 1 } },
      );
      await it.until(job, 'failed');
      await expectRefused(it, job, 'main.refund', 'first.ask');
      const request = { fromStep: 'first.ask', input: { order: 2 } };
      const anew = await it.services.reruns.rerun('default', job, request, who);
      await it.until(anew.id, 'waiting');
    });

    test('a child run of a reused step, at any depth', async () => {
      const it = await startWorkflow();
      const child = (id: string, steps: object[]) => ({
        source: 'test',
        definition: { id, jobs: { main: { steps } } },
      });
      it.services.definitions.register([
        child('asks', [ASK]),
        child('calls', [{ id: 'inner', uses: 'workflow', with: { id: 'asks' } }]),
        child('quiet', [{ id: 'note', uses: 'set', with: { done: true } }]),
      ]);
      const started = async (workflowId: string) => {
        const outer = { id: 'outer', uses: 'workflow', with: { id: workflowId } };
        return it.start({ steps: [outer, FAIL] }, { input: { order: 1 } });
      };
      const id = await started('calls');
      let asking: { id: string } | undefined;
      await expect
        .poll(async () => {
          const { items } = await it.call(listRuns, { query: { workflowId: 'asks' } as never });
          asking = items.find(({ waitingReason }) => waitingReason === 'approval');
          return asking;
        })
        .toBeDefined();
      const answer = { approved: true, by: 'ada', comment: null };
      await it.services.runs.approve('default', asking!.id, 'main.ask', answer, 'admin');
      await it.until(id, 'failed');
      await expectRefused(it, id, 'main.refund', 'main.outer');
      const same = await it.services.reruns.rerun('default', id, { fromStep: 'main.refund' }, who);
      await it.until(same.id, 'failed');

      const quiet = await started('quiet');
      await it.until(quiet, 'failed');
      const request = { fromStep: 'main.refund', input: { order: 2 } };
      const preview = await it.services.reruns.preview('default', quiet, request, who);
      expect(preview.reused.map((step) => step.id)).toEqual(['main.outer']);
    });

    test('a workflow in code', async () => {
      const body = `await ctx.approval('ask'); await ctx.step('refund', () => { throw new Error('no'); });`;
      const it = await startCode(
        `export const flow = defineWorkflow({ id: 'flow', run: async (ctx, input) => { ${body} } });`,
      );
      const id = await it.begin('flow', { order: 1 });
      await approve(it, id, 'main.ask');
      await expectRefused(it, id, 'main.refund', 'main.ask');
    });
  });

  test('other combinations of the matrix of the chosen step run again', async () => {
    const { ledger, it, counts } = await setUp();
    ledger.answer('two', (_, response, nth) => response.writeHead(nth === 1 ? 400 : 200).end());
    const call = (name: string) => ({
      ...{ id: name, uses: 'http' },
      with: { url: `${ledger.url}/${name}/${cel('matrix.v')}` },
    });
    const strategy = { matrix: { v: ['x', 'y'] }, failFast: false };
    const id = await it.start({ jobs: { m: { strategy, steps: [call('one'), call('two')] } } });
    await it.until(id, 'failed');
    const request = { fromStep: 'm:1.two', input: { changed: true } };
    const { notes } = await it.services.reruns.preview('default', id, request, who);
    expect(notes).toEqual(['The job "m" keeps the combinations of its matrix.']);
    const again = await it.services.reruns.rerun('default', id, request, who);
    await it.until(again.id, 'succeeded');
    expect(counts('one/x', 'one/y', 'two/x', 'two/y')).toEqual([2, 1, 2, 2]);
  });

  test('workflow code gets the new input, and its finished steps keep their results', async () => {
    const body = `const a = await ctx.step('a', () => input.n); await ctx.step('b', () => { if (input.n === 1) throw new Error('bug'); }); return [a, input.n];`;
    const it = await startCode(
      `export const flow = defineWorkflow({ id: 'flow', run: async (ctx, input) => { ${body} } });`,
    );
    const id = await it.begin('flow', { n: 1 });
    await it.until(id, 'failed');
    const request = { fromStep: 'main.b', input: { n: 2 } };
    const preview = await it.services.reruns.preview('default', id, request, who);
    expect([preview.reused, preview.repeated].map((steps) => steps.map((step) => step.id))).toEqual([
      ['main.a'],
      ['main.b'],
    ]);
    expect(preview.notes.join()).toContain('WORKFLOW_DEFINITION_CHANGED');
    const again = await it.services.reruns.rerun('default', id, request, who);
    expect((await it.until(again.id, 'succeeded', 'failed')).output).toEqual([1, 2]);
  });
});
