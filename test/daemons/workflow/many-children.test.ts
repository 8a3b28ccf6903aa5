import { describe, expect, onTestFinished, test } from 'vitest';
import { type EnterStep, listRuns, sendSignal } from '../../../src/contracts/index.ts';
import type { Replays } from '../../../src/daemons/workflow/domain/code/replays.ts';
import { compileCode } from '../../../src/daemons/workflow/domain/definition/compile-code.ts';
import { newCodeState } from '../../../src/daemons/workflow/domain/run/code-state.ts';
import { Program } from '../../../src/daemons/workflow/domain/run/program.ts';
import { newJob, type RunState } from '../../../src/daemons/workflow/domain/run/state.ts';
import {
  setStep,
  signalStep,
  workflowStep,
} from '../../../src/daemons/workflow/domain/steps/kinds/builtins.ts';
import type { StepKind } from '../../../src/daemons/workflow/domain/steps/step-kind.ts';
import { enteredStep } from '../../../src/daemons/workflow/domain/transition/code-steps.ts';
import type { RunRecord } from '../../../src/store/ports/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { type CodeWorkflow, startCode } from './support/code.ts';
import { type BareEngine, openEngine } from './support/engine.ts';
import { cel } from './support/workflow.ts';

/** What the functions of one service ask for: passes, steps one by one, and pages of the steps of earlier passes. */
interface Asked {
  passes: number;
  steps: number;
  pages: number;
}

function countAsked(replays: Replays): Asked {
  const asked: Asked = { passes: 0, steps: 0, pages: 0 };
  const open = replays.open.bind(replays);
  replays.open = (runId, token, calls) => {
    asked.passes++;
    return open(runId, token, {
      ...calls,
      enter(step) {
        asked.steps++;
        return calls.enter(step);
      },
      recall(after) {
        asked.pages++;
        return calls.recall(after);
      },
    });
  };
  return asked;
}

const WAITING = {
  id: 'waiting',
  outputs: { n: cel('input.n') },
  jobs: { main: { steps: [{ uses: 'signal', with: { name: 'go' } }] } },
};
const QUICK = {
  id: 'quick',
  outputs: { n: cel('input.n') },
  jobs: { main: { steps: [{ uses: 'set' }] } },
};

async function startParent(run: string, child: object) {
  const it = await startCode(
    `export const parent = defineWorkflow({ id: 'parent', run: async (ctx, { count }) => ${run} });`,
    {
      permissions: { platform: { workflows: true } },
      workflows: [{ id: 'parent', handler: 'flows.js#parent' }, child],
    },
  );
  return { it, asked: countAsked(it.services.replays) };
}

/** Ends the children one by one, each once the parent knows of the one before. */
async function endOneByOne(it: CodeWorkflow, id: string, count: number): Promise<void> {
  const { items } = await it.call(listRuns, { query: { workflowId: 'waiting', limit: 500 } });
  expect(items).toHaveLength(count);
  for (const [index, { id: child }] of items.entries()) {
    await it.call(sendSignal, { params: { runId: child, name: 'go' }, body: {} });
    const ended = async () =>
      (await it.steps(id)).filter(({ uses, status }) => uses === 'workflow' && status === 'succeeded').length;
    await expect.poll(ended, { timeout: 10_000 }).toBeGreaterThan(index);
    await expect.poll(() => it.services.engine.activeRuns, { timeout: 10_000 }).toBeLessThanOrEqual(0);
  }
}

test('ten thousand children of a function are the most, and what is beyond says what to do', () => {
  const children: StepKind = { ...setStep, name: 'workflow', mode: 'effect' };
  const workflow = compileCode({ id: 'parent', handler: 'flows.js#parent' }, 'code', () => children);
  const program = new Program(workflow);
  const run = { workflowId: 'parent' } as RunRecord;
  const state = { run, code: newCodeState(run, []) } as RunState;
  const job = newJob(workflow.jobs[0]!, 'main', null);
  const enter = (asked: EnterStep) => enteredStep(state, program, job, asked);
  const askedFor = (n: number): EnterStep => {
    return { id: `c:${n}`, branch: `1-${n}`, place: 0, uses: 'workflow', with: { id: 'quick' }, options: {} };
  };
  for (let n = 0; n < 10_000; n++) enter(askedFor(n));
  expect(job.steps).toHaveLength(10_000);
  expect(enter(askedFor(10_000))).toMatchObject({
    error: {
      message: expect.stringMatching(
        /has come to 10000 children, which is the most there may be\. Give parts of the work to workflows of their own/,
      ),
    },
    isFatal: true,
  });
  expect(enter(askedFor(9_999))).toEqual({ step: job.steps.at(-1), isNew: false });
});

describe('of children that end one by one', () => {
  const numbers = 'Array.from({ length: count }, (_, n) => n)';

  test.each([10, 40])(
    '%i that the function waits for together cost two passes, and one question each',
    async (count) => {
      const { it, asked } = await startParent(
        `(await ctx.all(${numbers}.map((n) => ctx.runWorkflow('waiting', { n })))).length`,
        WAITING,
      );
      const id = await it.begin('parent', { count });
      await it.until(id, 'waiting');
      await expect.poll(() => it.services.engine.activeRuns).toBe(0);
      await endOneByOne(it, id, count);
      expect(await it.until(id, 'succeeded', 'failed')).toMatchObject({ output: count });
      expect(asked).toEqual({ passes: 2, steps: count, pages: 1 });
    },
    60_000,
  );

  test.each([10, 40])(
    '%i that branches wait for cost a pass, a page of known steps and a new step each',
    async (count) => {
      const { it, asked } = await startParent(
        `(await ctx.all(${numbers}.map((n) => async () => {
        await ctx.runWorkflow('waiting', { n });
        return ctx.step('note', () => n, { idempotent: true });
      }))).length`,
        WAITING,
      );
      const id = await it.begin('parent', { count });
      await it.until(id, 'waiting');
      await expect.poll(() => it.services.engine.activeRuns).toBe(0);
      await endOneByOne(it, id, count);
      expect(await it.until(id, 'succeeded', 'failed')).toMatchObject({ output: count });
      expect(asked.passes).toBeLessThanOrEqual(count + 1);
      expect(asked.pages).toBe(asked.passes - 1);
      expect(asked.steps).toBe(2 * count);
    },
    60_000,
  );
});

test('a function may have more children than steps', async () => {
  const count = 1001;
  const { it, asked } = await startParent(
    `(await ctx.all(Array.from({ length: count }, (_, n) => ctx.runWorkflow('quick', { n }))))
      .reduce((sum, { n }) => sum + n, 0)`,
    QUICK,
  );
  const id = await it.begin('parent', { count });
  await expect
    .poll(async () => (await it.run(id)).status, { timeout: 120_000, interval: 250 })
    .toMatch(/succeeded|failed/);
  expect(await it.run(id)).toMatchObject({ status: 'succeeded', output: (count * (count - 1)) / 2 });
  // Some end while the pass goes on that came to them: it asks for those again.
  expect(asked.steps).toBeLessThanOrEqual(2 * count);
  expect(asked.passes).toBeLessThanOrEqual(3);
}, 150_000);

/** An engine without the service whose runs may start children, and how often it reads how those ended. */
async function startParents() {
  const looks = { asked: 0, reads: 0 };
  /** How often each run was read, by its number. */
  const loads = new Map<number, number>();
  const it: BareEngine = await openEngine({
    dataDir: await tempDir(),
    exclusive: true,
    kinds: [signalStep, workflowStep],
    wrap: (store) => ({
      ...store,
      runs: {
        ...store.runs,
        finished(ids) {
          looks.reads++;
          looks.asked += ids.length;
          return store.runs.finished(ids);
        },
        load(seq) {
          loads.set(seq, (loads.get(seq) ?? 0) + 1);
          return store.runs.load(seq);
        },
      },
    }),
  });
  onTestFinished(() => it.close());
  it.definitions.register([QUICK, WAITING].map((definition) => ({ source: 'test', definition })));
  await it.engine.start();
  return { it, looks, loads };
}

/** A run with so many children, in matrices of at most 250. */
const parentOf = (child: string, count: number) => ({
  id: 'parent',
  jobs: Object.fromEntries(
    Array.from({ length: Math.ceil(count / 250) }, (_, job) => [
      `job${job}`,
      {
        strategy: { matrix: { n: Array.from({ length: Math.min(250, count) }, (_, n) => n) } },
        steps: [{ id: 'c', uses: 'workflow', with: { id: child, input: { n: cel('matrix.n') } } }],
      },
    ]),
  ),
});

test('children that end together wake a parent that waits for them once', async () => {
  const count = 200;
  const { it, looks, loads } = await startParents();
  const id = await it.beginDefinition(parentOf('waiting', count));
  const parent = async () => (await it.store.runs.find(null, id))!;
  const children = async () =>
    Promise.all(
      (await it.store.runs.openChildren(id)).map(async (child) => (await it.store.runs.find(null, child))!),
    );
  const waiting = async () => (await children()).filter(({ status }) => status === 'waiting').length;
  await expect.poll(waiting, { timeout: 20_000 }).toBe(count);
  await expect.poll(() => it.engine.activeRuns).toBe(0);
  const { seq } = await parent();
  const before = { reads: looks.reads, loads: loads.get(seq) ?? 0 };
  const go = { kind: 'signal' as const, name: 'go', payload: 'null', at: Date.now() };
  await Promise.all((await children()).map((run) => it.engine.deliver(run, go, { once: false })));
  await expect.poll(async () => (await parent()).status, { timeout: 20_000 }).toBe('succeeded');
  // They end in the order in which they are read; those of one commit are one batch.
  expect(loads.get(seq)! - before.loads).toBeLessThan(count / 4);
  expect(looks.reads - before.reads).toBeLessThan(count / 4);
}, 60_000);

test.each([500, 5000])(
  '%i children of a run cost as few reads each',
  async (count) => {
    const { it, looks, loads } = await startParents();
    const id = await it.beginDefinition(parentOf('quick', count));
    const parent = async () => (await it.store.runs.find(null, id))!;
    await expect
      .poll(async () => (await parent()).finishedAt, { timeout: 240_000, interval: 250 })
      .not.toBeNull();
    expect((await parent()).status).toBe('succeeded');
    const { steps } = (await it.store.runs.load((await parent()).seq))!;
    expect(steps.filter(({ status }) => status === 'succeeded')).toHaveLength(count);
    // One for all that begin to wait together, and one for all that end together.
    expect(looks.reads).toBeLessThan(count / 50);
    expect(loads.get((await parent()).seq) ?? 0).toBeLessThan(count / 50);
  },
  300_000,
);
