import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import {
  decideApproval,
  listRuns,
  listSchedules,
  listWorkflows,
  pauseSchedule,
  resumeSchedule,
  sendSignal,
  startRun,
  triggerSchedule,
} from '../../../src/contracts/index.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { days, hours, minutes, seconds } from '../../../src/kit/time/duration.ts';
import { tempDir } from '../../support/daemon.ts';
import { startCode } from './support/code.ts';
import { cel, startWorkflow, type TestWorkflow } from './support/workflow.ts';

const signal = (it: TestWorkflow, id: string, name: string, payload: unknown = null) =>
  it.call(sendSignal, { params: { runId: id as never, name }, body: { payload } as never });

async function pass(it: TestWorkflow, ms: number): Promise<void> {
  it.clock.advance(ms);
  await it.services.engine.tick();
}

describe('waiting', () => {
  test('for a time is a row, not a process', async () => {
    const it = await startWorkflow();
    const id = await it.start(
      {
        steps: [
          { id: 'nap', uses: 'wait', with: { ms: seconds(90) } },
          { id: 'then', uses: 'wait', with: { until: cel('input.at') } },
          { uses: 'set' },
        ],
      },
      { input: { at: new Date(it.clock.now() + minutes(10)).toISOString() } },
    );
    await it.until(id, 'waiting');
    expect(it.services.engine.activeRuns).toBe(0);
    expect(await it.step(id, 'main.nap')).toMatchObject({
      status: 'waiting',
      waitingFor: { for: 'time' },
      wakeAt: it.clock.now() + seconds(90),
    });
    await pass(it, seconds(89));
    expect((await it.run(id)).status).toBe('waiting');
    await pass(it, seconds(1));
    await expect.poll(async () => (await it.step(id, 'main.nap')).status).toBe('succeeded');
    await pass(it, minutes(9));
    await it.until(id, 'succeeded');
  });

  test('goes on over a restart', async () => {
    const first = await startWorkflow();
    const id = await first.start({
      steps: [{ id: 'nap', uses: 'wait', with: { ms: hours(5) } }, { uses: 'set' }],
    });
    await first.until(id, 'waiting');
    await first.close();
    first.clock.advance(hours(6));
    const second = await startWorkflow({ dataDir: first.dataDir, clock: first.clock });
    const run = await second.until(id, 'succeeded');
    expect(run.resumeCount).toBe(0);
  });

  test('a clock that is set back an hour delays, one set forward hastens, and nothing is lost', async () => {
    const it = await startWorkflow();
    const id = await it.start({ steps: [{ uses: 'wait', with: { ms: minutes(30) } }] });
    await it.until(id, 'waiting');
    it.clock.jump(it.clock.now() - hours(1));
    await it.services.engine.tick();
    expect((await it.run(id)).status).toBe('waiting');
    it.clock.jump(it.clock.now() + hours(2));
    await it.services.engine.tick();
    await it.until(id, 'succeeded');
  });

  describe('after the wall clock is set back an hour', () => {
    const setBack = (it: TestWorkflow): void => it.clock.jump(it.clock.now() - hours(1));

    test.each([
      ['in a parked run', {}],
      [
        'beside a step that has a longer wait',
        { beside: { steps: [{ uses: 'wait', with: { ms: days(1) } }] } },
      ],
    ])('a wait of 2 s ends after 2 s %s', async (_where, jobs) => {
      const it = await startWorkflow();
      const wait = { steps: [{ id: 'nap', uses: 'wait', with: { ms: 2000 } }] };
      const id = await it.start({ jobs: { main: wait, ...jobs } });
      await it.until(id, 'waiting');
      setBack(it);
      await pass(it, 1999);
      expect((await it.step(id, 'main.nap')).status).toBe('waiting');
      it.clock.advance(1);
      await expect.poll(async () => (await it.step(id, 'main.nap')).status).toBe('succeeded');
    });

    test('the limits of a run and of a job end them in time', async () => {
      const it = await startWorkflow();
      const steps = [{ uses: 'signal', with: { name: 'never' } }];
      const ofRun = await it.start({ timeoutMs: 3000, steps });
      const ofJob = await it.start({ id: 'other', jobs: { main: { timeoutMs: 3000, steps } } });
      const ofSignal = await it.start({
        steps: [{ uses: 'signal', with: { name: 'never', timeoutMs: 3000 } }],
      });
      for (const id of [ofRun, ofJob, ofSignal]) await it.until(id, 'waiting');
      setBack(it);
      it.clock.advance(3000);
      await it.until(ofRun, 'timed_out');
      for (const id of [ofJob, ofSignal]) await it.until(id, 'failed');
    });

    test('a wait for a date still ends at that date', async () => {
      const it = await startWorkflow();
      const until = it.clock.now() + 2000;
      const id = await it.start({ steps: [{ id: 'nap', uses: 'wait', with: { until } }] });
      await it.until(id, 'waiting');
      setBack(it);
      await pass(it, minutes(59));
      expect((await it.step(id, 'main.nap')).status).toBe('waiting');
      await pass(it, minutes(2));
      await it.until(id, 'succeeded');
    });
  });

  test('for a signal takes the one that came before, and one for each wait', async () => {
    const it = await startWorkflow();
    const id = await it.start({
      steps: [
        { uses: 'wait', with: { ms: 1000 } },
        { id: 'one', uses: 'signal', with: { name: 'go' } },
        { id: 'two', uses: 'signal', with: { name: 'go' } },
      ],
    });
    await it.until(id, 'waiting');
    await signal(it, id, 'go', { n: 1 });
    await pass(it, 1000);
    await expect.poll(async () => (await it.step(id, 'main.one')).status).toBe('succeeded');
    expect((await it.step(id, 'main.one')).output).toMatchObject({ payload: { n: 1 } });
    expect(await it.step(id, 'main.two')).toMatchObject({ waitingFor: { for: 'signal', name: 'go' } });
    await signal(it, id, 'other');
    await signal(it, id, 'go', { n: 2 });
    await it.until(id, 'succeeded');
    await expect(signal(it, id, 'go')).rejects.toMatchObject({ code: 'CONFLICT' });
  });

  test('a signal that never comes times its step out', async () => {
    const it = await startWorkflow();
    const id = await it.start({
      steps: [{ id: 's', uses: 'signal', with: { name: 'go', timeoutMs: 5000 } }],
    });
    await it.until(id, 'waiting');
    await pass(it, 5000);
    await it.until(id, 'failed');
    expect(await it.step(id, 'main.s')).toMatchObject({
      status: 'timed_out',
      error: { details: { waitedFor: 'signal' } },
    });
  });

  test('for an approval: approved, refused, and decided once', async () => {
    const it = await startWorkflow();
    const definition = {
      steps: [{ id: 'ok', uses: 'approval', with: { message: `ship ${cel('input.v')}?` } }, { uses: 'set' }],
    };
    const decide = (id: string, approved: boolean) =>
      it.call(decideApproval, {
        params: { runId: id as never, stepId: 'main.ok' },
        body: { approved, comment: 'c' },
      });
    const yes = await it.start(definition, { input: { v: 7 } });
    await it.until(yes, 'waiting');
    expect((await it.step(yes, 'main.ok')).waitingFor).toEqual({ for: 'approval', message: 'ship 7?' });
    await decide(yes, true);
    await it.until(yes, 'succeeded');
    expect((await it.step(yes, 'main.ok')).output).toMatchObject({
      approved: true,
      by: 'anonymous',
      comment: 'c',
    });
    await expect(decide(yes, true)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const no = await it.start(definition);
    await it.until(no, 'failed', 'waiting');
    const third = await it.start(definition, { input: { v: 1 } });
    await it.until(third, 'waiting');
    await decide(third, false);
    await it.until(third, 'failed');
    expect((await it.step(third, 'main.ok')).error).toMatchObject({ details: { reason: 'refused' } });
  });

  test('beside other jobs wakes while they run', async () => {
    const it = await startWorkflow();
    const id = await it.start({
      jobs: {
        a: { steps: [{ id: 's', uses: 'signal', with: { name: 'a' } }] },
        b: { steps: [{ id: 's', uses: 'signal', with: { name: 'b' } }] },
        c: { needs: ['a', 'b'], steps: [{ uses: 'set' }] },
      },
    });
    await it.until(id, 'waiting');
    await Promise.all([signal(it, id, 'a'), signal(it, id, 'b')]);
    await it.until(id, 'succeeded');
  });

  test('a hundred signals at once find their hundred runs', async () => {
    const it = await startWorkflow();
    const ids = await Promise.all(
      Array.from({ length: 100 }, () => it.start({ steps: [{ uses: 'signal', with: { name: 'go' } }] })),
    );
    await Promise.all(ids.map((id) => signal(it, id, 'go')));
    for (const id of ids) await it.until(id, 'succeeded');
  });
});

async function project(files: Record<string, string>): Promise<string> {
  const folder = await tempDir();
  await mkdir(join(folder, 'workflows'));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, 'workflows', name), text);
  return folder;
}

describe('child workflows', () => {
  const CHILD = `
id: child
inputs: {type: object, properties: {n: {type: number}}, required: [n]}
outputs: {twice: "\${{ jobs.main.outputs.twice }}"}
jobs:
  main:
    outputs: {twice: "\${{ steps.s.output.v }}"}
    steps:
      - {id: gate, if: input.n > 5, uses: signal, with: {name: go}}
      - {id: s, uses: set, with: {v: "\${{ input.n * 2 }}"}}
`;
  const PARENT = `
id: parent
outputs: {got: "\${{ jobs.main.outputs.got }}"}
jobs:
  main:
    outputs: {got: "\${{ steps.c.output.twice }}"}
    steps:
      - {id: c, uses: workflow, with: {id: child, input: {n: "\${{ input.n }}"}}}
`;
  const start = async (it: TestWorkflow, workflowId: string, input: unknown) =>
    (await it.call(startRun, { body: { workflowId, input } as never })).run.id;
  const childOf = async (it: TestWorkflow, id: string) => {
    await expect.poll(async () => (await it.step(id, 'main.c')).waitingFor?.runId).toBeTruthy();
    return (await it.step(id, 'main.c')).waitingFor!.runId!;
  };

  test('hand their output to the step', async () => {
    const it = await startWorkflow({ projectDir: await project({ 'c.yaml': CHILD, 'p.yaml': PARENT }) });
    expect((await it.until(await start(it, 'parent', { n: 4 }), 'succeeded')).output).toEqual({ got: 8 });
    const slow = await start(it, 'parent', { n: 6 });
    const child = await childOf(it, slow);
    await it.until(slow, 'waiting');
    expect(await it.run(child)).toMatchObject({ parentRunId: slow, trigger: 'child' });
    await signal(it, child, 'go');
    expect((await it.until(slow, 'succeeded')).output).toEqual({ got: 12 });
  });

  test('that fail, fail the step; with the parent they are cancelled', async () => {
    const it = await startWorkflow({ projectDir: await project({ 'c.yaml': CHILD, 'p.yaml': PARENT }) });
    const bad = await it.until(await start(it, 'parent', { n: 'x' }), 'failed');
    expect(bad.error?.details).toMatchObject({ error: { code: 'VALIDATION_ERROR' } });
    const id = await start(it, 'parent', { n: 6 });
    const child = await childOf(it, id);
    await it.until(id, 'waiting');
    await it.services.runs.cancel('default', id);
    await it.until(child, 'cancelled');
    const other = await start(it, 'parent', { n: 6 });
    const otherChild = await childOf(it, other);
    await it.until(otherChild, 'waiting');
    await it.services.runs.cancel('default', otherChild);
    expect((await it.until(other, 'failed')).error?.details).toMatchObject({
      error: { details: { status: 'cancelled' } },
    });
  });

  test('a workflow that starts itself is stopped', async () => {
    const it = await startWorkflow({
      projectDir: await project({
        'l.yaml': 'id: loop\njobs: {main: {steps: [{id: c, uses: workflow, with: {id: loop}}]}}',
      }),
    });
    await it.until(await start(it, 'loop', {}), 'failed');
    const { items } = await it.call(listRuns, { query: { limit: 100 } as never });
    expect(items).toHaveLength(17);
  });
});

describe('workflow files', () => {
  test('are registered; the faults of the others are told with line and column', async () => {
    const it = await startWorkflow({
      projectDir: await project({
        'good.yaml': 'id: good\njobs: {a: {steps: [{uses: set}]}}',
        'bad.yaml': `id: bad\njobs:\n  a:\n    steps:\n      - uses: set\n        with:\n          v: "${cel('1 +')}"\n`,
        'torn.yaml': 'id: [unclosed',
        'twin.yaml': 'id: good\njobs: {a: {steps: [{uses: set}]}}',
        'endless.yaml': 'id: endless\njobs: {a: &a {steps: [{uses: set, with: {v: *a}}]}}',
      }),
    });
    const { items, faults } = await it.call(listWorkflows);
    expect(items.map(({ id, source }) => [id, source])).toEqual([['good', 'workflows/good.yaml']]);
    expect(faults.map(({ source, path }) => [source, path])).toEqual([
      ['workflows/endless.yaml', ''],
      ['workflows/torn.yaml:1:14', ''],
      ['workflows/bad.yaml:7:23', 'jobs.a.steps[0].with.v'],
      ['workflows/twin.yaml:1:5', 'id'],
    ]);
  });

  test('and manifests are told, however they fail', async () => {
    const it = await startWorkflow();
    const { definitions } = it.services;
    const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
    definitions.register([
      {
        source: 'deep',
        definition: { id: 'deep', jobs: { a: { steps: [{ uses: 'set', with: { deep } }] } } },
      },
      { source: 'good', definition: { id: 'good', jobs: { a: { steps: [{ uses: 'set' }] } } } },
    ]);
    expect([...definitions.registered.keys()]).toEqual(['good']);
    expect(definitions.faults).toEqual([
      { source: 'deep', path: '', message: expect.stringContaining('call stack') },
    ]);
  });
});

describe('schedules', () => {
  const plan = (more: string, steps = '[{uses: set}]') =>
    `id: nightly\non: {schedule: [{cron: "0 3 * * *", timezone: Europe/Berlin, ${more}}]}\njobs: {main: {steps: ${steps}}}`;
  const runsOf = async (it: TestWorkflow) =>
    (await it.call(listRuns, { query: { limit: 100, workflowId: 'nightly' } as never })).items;
  const only = async (it: TestWorkflow) => (await it.call(listSchedules)).items[0]!;

  test('start runs at their time, in their zone, once', async () => {
    const it = await startWorkflow({ projectDir: await project({ 'n.yaml': plan('input: {a: 1}') }) });
    const schedule = await only(it);
    expect(new Date(schedule.nextAt!).toISOString()).toBe('2030-01-01T02:00:00.000Z');
    await pass(it, hours(2));
    await expect.poll(async () => (await runsOf(it)).length).toBe(1);
    expect((await runsOf(it))[0]).toMatchObject({ trigger: 'schedule', input: { a: 1 } });
    it.clock.jump(it.clock.now() - hours(1));
    await pass(it, hours(1));
    expect(await runsOf(it)).toHaveLength(1);
    expect(new Date((await only(it)).nextAt!).toISOString()).toBe('2030-01-02T02:00:00.000Z');
  });

  test.each([
    ['none', 0],
    ['latest', 1],
    ['all', 3],
  ])('after three missed times, catchUp %s starts %i', async (catchUp, expected) => {
    const projectDir = await project({ 'n.yaml': plan(`catchUp: ${catchUp}, overlap: allow`) });
    const first = await startWorkflow({ projectDir });
    await first.close();
    first.clock.advance(hours(60));
    const it = await startWorkflow({ projectDir, dataDir: first.dataDir, clock: first.clock });
    await it.services.engine.tick();
    expect(await runsOf(it)).toHaveLength(expected);
  });

  test.each([
    ['skip', 1],
    ['allow', 2],
    ['queue', 1],
  ])('while the run before goes on, overlap %s leaves %i', async (overlap, expected) => {
    const steps = '[{uses: signal, with: {name: go}}]';
    const it = await startWorkflow({
      projectDir: await project({ 'n.yaml': plan(`overlap: ${overlap}`, steps) }),
    });
    await pass(it, hours(2));
    await pass(it, hours(24));
    expect(await runsOf(it)).toHaveLength(expected);
    const [running] = await runsOf(it);
    await it.until(running!.id, 'waiting');
    // What is held back asks for no look of its own: it would be one every few milliseconds.
    const next = await it.services.schedules.serve(it.clock.now());
    expect(next ?? Number.POSITIVE_INFINITY).toBeGreaterThan(it.clock.now());
    await signal(it, running!.id, 'go');
    await it.until(running!.id, 'succeeded');
    await pass(it, minutes(1));
    expect(await runsOf(it)).toHaveLength(overlap === 'queue' ? 2 : expected);
  });

  test.each([
    ['forward', '2030-03-30', ['2030-03-31T01:00', '2030-04-01T00:30', '2030-04-02T00:30']],
    ['back', '2030-10-26', ['2030-10-27T00:30', '2030-10-28T01:30', '2030-10-29T01:30']],
  ])('start once on the day on which clocks go %s', async (_, from, expected) => {
    const clock = manualClock(Date.parse(`${from}T12:00:00Z`));
    // 02:30 is not there on one of these days, and twice on the other.
    const file = plan('overlap: allow').replace('0 3 * * *', '30 2 * * *');
    const it = await startWorkflow({ projectDir: await project({ 'n.yaml': file }), clock });
    const served = new Set<string>();
    for (let hour = 0; hour < 72; hour++) {
      await pass(it, hours(1));
      const { lastAt } = await only(it);
      if (lastAt !== null) served.add(new Date(lastAt).toISOString().slice(0, 16));
    }
    expect([...served]).toEqual(expected);
    expect(await runsOf(it)).toHaveLength(3);
  });

  test('what waited for the run before is not missed, whatever catchUp says', async () => {
    const steps = '[{uses: signal, with: {name: go}}]';
    const file = plan('overlap: queue, catchUp: none', steps);
    const it = await startWorkflow({ projectDir: await project({ 'n.yaml': file }) });
    await pass(it, hours(2));
    const [before] = await runsOf(it);
    await it.until(before!.id, 'waiting');
    // It is due at 24 hours, and looked at again and again.
    for (let hour = 0; hour < 26; hour++) await pass(it, hours(1));
    expect(await runsOf(it)).toHaveLength(1);
    await signal(it, before!.id, 'go');
    await it.until(before!.id, 'succeeded');
    await pass(it, seconds(1));
    expect(await runsOf(it)).toHaveLength(2);
    expect(new Date((await only(it)).lastAt!).toISOString()).toBe('2030-01-02T02:00:00.000Z');
  });

  test.each(['while the service runs', 'while it does not'])(
    'a clock that was years ahead and is put right %s stops none',
    async (when) => {
      const clock = manualClock(Date.parse('2036-01-01T00:00:00Z'));
      const projectDir = await project({ 'n.yaml': plan('catchUp: none') });
      let it = await startWorkflow({ projectDir, clock });
      await pass(it, hours(2));
      expect(await runsOf(it)).toHaveLength(1);
      const { dataDir } = it;
      if (when === 'while it does not') await it.close();
      clock.jump(Date.parse('2030-01-01T00:00:00Z'));
      if (when === 'while it does not') it = await startWorkflow({ projectDir, dataDir, clock });
      await it.services.engine.tick();
      expect(new Date((await only(it)).nextAt!).toISOString()).toBe('2030-01-01T02:00:00.000Z');
      await pass(it, hours(2));
      expect(await runsOf(it)).toHaveLength(2);
    },
  );

  test('one whose check takes long keeps no run from going on', async () => {
    const source = `export const flow = defineWorkflow({
      id: 'flow',
      input: z.any().refine(() => new Promise(() => {})),
      run: () => 1,
    });`;
    const it = await startCode(source, { schedules: [{ workflow: 'flow', cron: '0 0 * * *' }] });
    const id = await it.start({ steps: [{ uses: 'wait', with: { ms: hours(24) + seconds(1) } }] });
    await it.until(id, 'waiting');
    it.clock.advance(hours(24));
    const ticked = it.services.engine.tick();
    // The schedule is being served when the run falls due.
    await pause(100);
    it.clock.advance(seconds(1));
    await it.until(id, 'succeeded');
    // Its five seconds, once its process is there to be asked.
    const over = ticked.then(() => true);
    while (!(await Promise.race([over, pause(50, false)]))) it.clock.advance(seconds(1));
  });

  test('keep their pause when plans before them come and go, and by their id whatever becomes of their time', async () => {
    const folder = await project({});
    const file = join(folder, 'workflows/n.yaml');
    const write = (plans: string) =>
      writeFile(file, `id: nightly\non: {schedule: [${plans}]}\njobs: {main: {steps: [{uses: set}]}}`);
    await write('{cron: "0 1 * * *"}, {cron: "0 2 * * *"}, {id: own, cron: "0 3 * * *"}');
    const it = await startWorkflow({ projectDir: folder });
    const plans = async () => (await it.call(listSchedules)).items;
    for (const { id, cron } of await plans())
      if (cron !== '0 1 * * *') await it.call(pauseSchedule, { params: { scheduleId: id } });
    await write('{cron: "0 2  * * *"}, {cron: "0 4 * * *"}, {id: own, cron: "0 5 * * *"}');
    const pauses = async () => (await plans()).map(({ cron, paused }) => [cron, paused]).sort();
    await expect.poll(pauses).toEqual([
      ['0 2  * * *', true],
      ['0 4 * * *', false],
      ['0 5 * * *', true],
    ]);
    await write('{id: own, cron: "0 5 * * *"}, {id: own, cron: "0 6 * * *"}');
    await expect
      .poll(async () => (await it.call(listWorkflows)).faults.map(({ path }) => path))
      .toEqual(['on.schedule[1].id']);
  });

  describe('keep their pause and last run while their owner is absent:', () => {
    const facts = async (it: TestWorkflow) =>
      (await it.call(listSchedules)).items.map(({ id, paused, nextAt, lastAt, lastRunId }) => ({
        ...{ id, paused, nextAt, lastAt, lastRunId },
      }));

    test('a plugin, over reloads', async () => {
      const source = `export const flow = defineWorkflow({ id: 'flow', run: () => 1 });`;
      const plans = ['0 1 * * *', '0 2 * * *'].map((cron) => ({ workflow: 'flow', cron }));
      const it = await startCode(source, { schedules: plans });
      const { plugins } = it.services;
      const away = join(it.folder, '../../away');
      await pass(it, hours(3));
      const [one, two] = await facts(it);
      await it.call(pauseSchedule, { params: { scheduleId: one!.id } });
      const before = await facts(it);
      expect(before[0]).toMatchObject({ paused: true, lastRunId: expect.any(String) });

      await rename(it.folder, away);
      await plugins.reload();
      await expect.poll(() => facts(it)).toEqual([]);
      await expect(it.call(resumeSchedule, { params: { scheduleId: one!.id } })).rejects.toMatchObject({
        code: 'NOT_FOUND',
      });
      await pass(it, days(2));
      await rename(away, it.folder);
      await plugins.reload();
      await expect
        .poll(() => facts(it))
        .toEqual([before[0], { ...before[1], nextAt: two!.nextAt! + days(2) }]);
      await pass(it, 0);
      expect((await facts(it)).map(({ lastRunId }) => lastRunId)).toEqual(
        before.map(({ lastRunId }) => lastRunId),
      );
    });

    test('a file that is broken at a restart; a plan that is removed from its file is forgotten', async () => {
      const folder = await project({ 'n.yaml': plan('overlap: allow') });
      const file = join(folder, 'workflows/n.yaml');
      let it = await startWorkflow({ projectDir: folder });
      const restart = async (text: string) => {
        await it.close();
        await writeFile(file, text);
        it = await startWorkflow({ projectDir: folder, dataDir: it.dataDir, clock: it.clock });
      };
      await it.call(pauseSchedule, { params: { scheduleId: (await only(it)).id } });
      const before = await facts(it);
      await restart('id: [unclosed');
      expect(await facts(it)).toEqual([]);
      await restart(plan('overlap: allow'));
      expect(await facts(it)).toEqual(before);

      await restart('id: nightly\njobs: {main: {steps: [{uses: set}]}}');
      await restart(plan('overlap: allow'));
      expect(await facts(it)).toMatchObject([{ paused: false }]);

      await it.call(pauseSchedule, { params: { scheduleId: (await only(it)).id } });
      await restart('id: [unclosed');
      it.clock.advance(days(31));
      await restart('id: [unclosed');
      await restart(plan('overlap: allow'));
      expect(await facts(it)).toMatchObject([{ paused: false }]);
    });
  });

  test('are paused, resumed and triggered by hand', async () => {
    const it = await startWorkflow({ projectDir: await project({ 'n.yaml': plan('overlap: allow') }) });
    const params = { scheduleId: (await only(it)).id };
    expect((await it.call(pauseSchedule, { params })).schedule).toMatchObject({ paused: true, nextAt: null });
    await pass(it, hours(48));
    expect(await runsOf(it)).toHaveLength(0);
    const { schedule } = await it.call(resumeSchedule, { params });
    expect(schedule.nextAt).toBeGreaterThan(it.clock.now());
    const { run } = await it.call(triggerSchedule, { params });
    await it.until(run.id, 'succeeded');
    await expect(it.call(triggerSchedule, { params: { scheduleId: 'nope' } })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
    await expect(it.call(pauseSchedule, { params }, 'other')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});
