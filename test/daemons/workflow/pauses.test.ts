import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  listRuns,
  listWorkflows,
  pauseRun,
  pauseWorkflow,
  postCancelRun,
  resumeRun,
  resumeWorkflow,
  sendSignal,
  startRun,
} from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { describeOnStores } from '../../support/stores.ts';
import { callLedger } from './support/kept-ledger.ts';
import { LEDGER_CONFIG, startLedger } from './support/ledger.ts';
import { startProcess } from './support/process.ts';
import { runAnother, runAnotherLater } from './support/run-another.ts';
import { asDefinition, cel, startWorkflow, type TestWorkflow } from './support/workflow.ts';

const POLL = { timeout: 20_000 };
const SIGNAL = { id: 'go', uses: 'signal', with: { name: 'go' } };
const NOTE = { id: 'note', uses: 'set', with: { v: cel('run.id') } };
const params = (runId: string) => ({ params: { runId: runId as never } });
const signal = (it: TestWorkflow, runId: string) =>
  it.call(sendSignal, { params: { runId: runId as never, name: 'go' }, body: { payload: 1 } as never });

describeOnStores('a paused run', (store) => {
  test('takes no signal or timer until it is resumed', async () => {
    const it = await startWorkflow({ config: await store() });
    const signalled = await it.start({ steps: [SIGNAL, NOTE] });
    const timed = await it.start({ steps: [{ id: 'nap', uses: 'wait', with: { ms: 1000 } }, NOTE] });
    for (const id of [signalled, timed]) await it.until(id, 'waiting');
    for (const id of [signalled, timed])
      expect((await it.call(pauseRun, params(id))).run).toMatchObject({
        status: 'waiting',
        pauseScope: 'run',
      });
    await signal(it, signalled);
    await runAnotherLater(it);
    for (const id of [signalled, timed])
      expect(await it.run(id)).toMatchObject({ status: 'waiting', pauseScope: 'run' });
    for (const id of [signalled, timed]) await it.call(resumeRun, params(id));
    for (const id of [signalled, timed]) {
      expect(await it.until(id, 'succeeded')).not.toHaveProperty('pauseScope');
      expect(await it.eventTypes(id)).toEqual(expect.arrayContaining(['run.paused', 'run.unpaused']));
    }
  });

  test('is refused with the reason once the run has ended, and makes no difference the second time', async () => {
    const it = await startWorkflow({ config: await store() });
    const ended = await it.start({ steps: [NOTE] });
    await it.until(ended, 'succeeded');
    await expect(it.call(pauseRun, params(ended))).rejects.toMatchObject({
      code: 'CONFLICT',
      message: `Run ${ended} has already ended: succeeded. Only unfinished runs can be paused.`,
    });
    expect((await it.call(resumeRun, params(ended))).run).toMatchObject({ status: 'succeeded' });
    await expect(it.call(pauseRun, params('run_none'))).rejects.toMatchObject({
      code: 'WORKFLOW_RUN_NOT_FOUND',
    });
    const id = await it.start({ steps: [SIGNAL] });
    await it.until(id, 'waiting');
    for (const call of [pauseRun, pauseRun])
      expect((await it.call(call, params(id))).run.pauseScope).toBe('run');
    for (const call of [resumeRun, resumeRun])
      expect((await it.call(call, params(id))).run).not.toHaveProperty('pauseScope');
    const types = await it.eventTypes(id);
    expect(types.filter((type) => /paused$/.test(type))).toEqual(['run.paused', 'run.unpaused']);
  });

  test('begins the next steps when it is resumed, although another step is still in flight', async () => {
    const ledger = await startLedger();
    const answers: Array<() => void> = [];
    ledger.answer('slow', (_, response) => void answers.push(() => response.end('{}')));
    const it = await startWorkflow({ config: { ...LEDGER_CONFIG, ...(await store()) } });
    const nap = { id: 'nap', uses: 'wait', with: { ms: 1000 } };
    const id = await it.start({
      jobs: {
        held: { steps: [callLedger(ledger, 'slow')] },
        beside: { steps: [nap, callLedger(ledger, 'beside')] },
      },
    });
    await expect.poll(() => answers.length).toBe(1);
    await it.call(pauseRun, params(id));
    await runAnotherLater(it);
    expect(ledger.count(`beside/${id}`)).toBe(0);
    await it.call(resumeRun, params(id));
    await expect.poll(() => ledger.count(`beside/${id}`)).toBe(1);
    answers[0]!();
    await it.until(id, 'succeeded');
    expect(answers).toHaveLength(1);
  });

  test('can be cancelled while a step is in flight, and cleans up', async () => {
    const ledger = await startLedger();
    ledger.answer('held', () => {});
    const it = await startWorkflow({ config: { ...LEDGER_CONFIG, ...(await store()) } });
    const id = await it.start({ steps: [callLedger(ledger, 'held'), { ...NOTE, if: 'cancelled()' }] });
    await expect.poll(() => ledger.count(`held/${id}`)).toBe(1);
    await it.call(pauseRun, params(id));
    await it.call(postCancelRun, params(id));
    await expect(it.call(pauseRun, params(id))).rejects.toMatchObject({ code: 'CONFLICT' });
    await it.until(id, 'cancelled');
    expect((await it.step(id, 'main.note')).status).toBe('succeeded');
  });

  test('finishes the step in flight and begins no new one', async () => {
    const ledger = await startLedger();
    const answers: Array<() => void> = [];
    ledger.answer('slow', (_, response) => void answers.push(() => response.end('{}')));
    const it = await startWorkflow({ config: { ...LEDGER_CONFIG, ...(await store()) } });
    const id = await it.start({ steps: [callLedger(ledger, 'slow'), callLedger(ledger, 'next')] });
    await expect.poll(() => answers.length).toBe(1);
    await it.call(pauseRun, params(id));
    answers[0]!();
    await expect.poll(() => it.run(id), POLL).toMatchObject({ status: 'waiting', pauseScope: 'run' });
    await runAnotherLater(it);
    expect((await it.step(id, 'main.slow')).status).toBe('succeeded');
    expect(ledger.count(`next/${id}`)).toBe(0);
    expect(await it.run(id)).toMatchObject({ status: 'waiting', pauseScope: 'run' });
    await it.call(resumeRun, params(id));
    await it.until(id, 'succeeded');
    expect([ledger.count(`slow/${id}`), ledger.count(`next/${id}`)]).toEqual([1, 1]);
  });

  test('can be cancelled, and cleans up', async () => {
    const it = await startWorkflow({ config: await store() });
    const id = await it.start({ steps: [SIGNAL, { ...NOTE, if: 'cancelled()' }] });
    await it.until(id, 'waiting');
    await it.call(pauseRun, params(id));
    await it.call(postCancelRun, params(id));
    await it.until(id, 'cancelled');
    expect((await it.step(id, 'main.note')).status).toBe('succeeded');
  });

  test('stays paused when the service is killed', async () => {
    const dataDir = await tempDir();
    const ledger = await startLedger();
    ledger.answer('held', (_, response, nth) => void (nth > 1 && response.end('{}')));
    const config = { ...LEDGER_CONFIG, ...(await store()) };
    const first = await startProcess(dataDir, config);
    const id = await first.start({ steps: [callLedger(ledger, 'held', { idempotencyKey: 'k' })] });
    await expect.poll(() => ledger.count(`held/${id}`)).toBe(1);
    await first.call(pauseRun, params(id));
    await first.kill();
    const second = await startProcess(dataDir, config);
    const paused = { pauseScope: 'run', status: 'queued', queuedReason: 'It is paused' };
    await expect.poll(() => second.run(id), POLL).toMatchObject(paused);
    // An interrupted run that is not paused is claimed before a new run.
    await runAnother(second);
    expect(await second.run(id)).toMatchObject(paused);
    expect(ledger.count(`held/${id}`)).toBe(1);
    await second.call(resumeRun, params(id));
    await expect.poll(async () => (await second.run(id)).status, POLL).toBe('succeeded');
  }, 60_000);

  test('can be cancelled after the service was killed before the run had drained', async () => {
    const dataDir = await tempDir();
    const ledger = await startLedger();
    ledger.answer('held', () => {});
    const config = { ...LEDGER_CONFIG, ...(await store()) };
    const first = await startProcess(dataDir, config);
    const held = callLedger(ledger, 'held', { idempotencyKey: 'k' });
    const id = await first.start({ steps: [held, callLedger(ledger, 'undo', { if: 'cancelled()' })] });
    await expect.poll(() => ledger.count(`held/${id}`)).toBe(1);
    await first.call(pauseRun, params(id));
    await first.kill();
    const second = await startProcess(dataDir, config);
    await expect.poll(() => second.run(id), POLL).toMatchObject({ status: 'queued' });
    await second.call(postCancelRun, params(id));
    await expect.poll(() => second.run(id), POLL).toMatchObject({ status: 'cancelled' });
    expect([ledger.count(`held/${id}`), ledger.count(`undo/${id}`)]).toEqual([1, 1]);
  }, 60_000);
});

describeOnStores('a paused workflow', (store) => {
  test('queues its runs in one namespace until it is resumed', async () => {
    const projectDir = await tempDir();
    await mkdir(join(projectDir, 'workflows'));
    await writeFile(
      join(projectDir, 'workflows/ship.json'),
      JSON.stringify(asDefinition({ id: 'ship', steps: [SIGNAL] })),
    );
    const it = await startWorkflow({
      projectDir,
      config: { workflows: ['workflows/*.json'], ...(await store()) },
    });
    const begin = async (tenant?: string) =>
      (await it.call(startRun, { body: { workflowId: 'ship' } }, tenant)).run;
    const begun = await begin();
    await it.until(begun.id, 'waiting');
    const ofShip = { params: { workflowId: 'ship' } };
    expect(await it.call(pauseWorkflow, ofShip)).toEqual({ workflowId: 'ship', paused: true });
    expect((await it.call(listWorkflows)).items).toMatchObject([{ id: 'ship', paused: true }]);
    const queued = await begin();
    expect(queued).toMatchObject({
      status: 'queued',
      pauseScope: 'workflow',
      queuedReason: 'Its workflow is paused',
    });
    const other = await begin('other');
    await expect.poll(async () => (await it.run(other.id, 'other')).status).toBe('waiting');
    await runAnotherLater(it);
    expect((await it.run(queued.id)).status).toBe('queued');
    await signal(it, begun.id);
    await it.until(begun.id, 'succeeded');
    const alone = await begin();
    await it.call(resumeRun, params(alone.id));
    await it.until(alone.id, 'waiting');
    expect((await it.run(queued.id)).status).toBe('queued');
    expect(await it.call(resumeWorkflow, ofShip)).toEqual({ workflowId: 'ship', paused: false });
    await it.until(queued.id, 'waiting');
    expect(
      (await it.call(listRuns, { query: { limit: 10 } as never })).items.every(
        ({ pauseScope }) => !pauseScope,
      ),
    ).toBe(true);
    await expect(it.call(pauseWorkflow, { params: { workflowId: 'none' } })).rejects.toMatchObject({
      code: 'WORKFLOW_NOT_FOUND',
    });
  });

  test('leaves the concurrency key that it shares to other workflows, and acquires it once it is resumed', async () => {
    const projectDir = await tempDir();
    await mkdir(join(projectDir, 'workflows'));
    const concurrency = { key: 'shared', limit: 1 };
    for (const id of ['ship', 'other'])
      await writeFile(
        join(projectDir, `workflows/${id}.json`),
        JSON.stringify(asDefinition({ id, concurrency, steps: [SIGNAL] })),
      );
    const it = await startWorkflow({
      projectDir,
      config: { workflows: ['workflows/*.json'], ...(await store()) },
    });
    const begin = async (workflowId: string) => (await it.call(startRun, { body: { workflowId } })).run.id;
    const holder = await begin('other');
    await it.until(holder, 'waiting');
    const queued = await begin('ship');
    await it.call(pauseWorkflow, { params: { workflowId: 'ship' } });
    const later = await begin('ship');
    const next = await begin('other');
    await signal(it, holder);
    await it.until(next, 'waiting');
    await it.call(resumeWorkflow, { params: { workflowId: 'ship' } });
    await signal(it, next);
    await it.until(queued, 'waiting');
    await signal(it, queued);
    await it.until(later, 'waiting');
  });
});
