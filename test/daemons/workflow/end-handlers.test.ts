import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  getMessage,
  listMessages,
  listRunEvents,
  listRuns,
  listWorkflows,
} from '../../../src/contracts/index.ts';
import type { EventTypeServices } from '../../../src/daemons/gateway/routes/event-types.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { PlatformError } from '../../../src/kit/errors/errors.ts';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { seconds } from '../../../src/kit/time/duration.ts';
import { sqliteWorkflowStore } from '../../../src/store/sqlite/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { startGateway } from '../../support/gateway.ts';
import { describeOnStores } from '../../support/stores.ts';
import { startProcess } from './support/process.ts';
import { cel, startWorkflow, type TestWorkflow } from './support/workflow.ts';

const FAILS = [{ id: 'bad', uses: 'set', with: { v: cel('1 / 0') } }];
const NOTIFY = { id: 'notify', jobs: { main: { steps: [{ uses: 'set' }] } } };

/** A project with workflow files. */
async function project(...definitions: Array<{ id: string }>): Promise<string> {
  const folder = await tempDir();
  await addFiles(folder, ...definitions);
  return folder;
}

async function addFiles(projectDir: string, ...definitions: Array<{ id: string }>): Promise<void> {
  await mkdir(join(projectDir, 'workflows'), { recursive: true });
  for (const definition of definitions)
    await writeFile(join(projectDir, `workflows/${definition.id}.json`), JSON.stringify(definition));
}

const config = { workflows: ['workflows/*.json'] };
const runsOf = async (it: Pick<TestWorkflow, 'call'>, workflowId: string) =>
  (await it.call(listRuns, { query: { workflowId, limit: 100 } as never })).items;
const handlersOf = async (it: Pick<TestWorkflow, 'run'>, id: string) => (await it.run(id)).handlers;
const eventsOf = async (it: Pick<TestWorkflow, 'call'>, id: string, type: string) =>
  (await it.call(listRunEvents, { params: { runId: id as never } })).items.filter(
    (event) => event.type === type,
  );

describeOnStores('the end of a run', (store) => {
  test('starts the workflow of on.failure once, with the facts of the run', async () => {
    const it = await startWorkflow({
      projectDir: await project(NOTIFY),
      config: { ...config, ...(await store()) },
    });
    const { starter, endHandlers } = it.services;
    const start = vi.spyOn(starter, 'start');
    const startsOfHandlers = () => start.mock.calls.filter(([{ handles }]) => handles);
    const on = { failure: { workflow: 'notify' }, success: { workflow: 'missing' } };
    const id = await it.start({ id: 'ship', on, steps: FAILS }, { input: { order: 7 } });
    await it.until(id, 'failed');
    await expect.poll(() => handlersOf(it, id)).toMatchObject([{ workflowId: 'notify' }]);
    const [handler] = await runsOf(it, 'notify');
    const run = await it.run(id);
    expect(handler).toMatchObject({ trigger: 'run_end', handles: id, traceId: run.traceId });
    expect(handler!.input).toEqual({
      ...{ id, workflowId: 'ship', status: 'failed', failedStep: 'main.bad' },
      ...{ startedAt: run.startedAt, finishedAt: run.finishedAt },
      error: { code: 'STEP_FAILED', message: run.error!.message, cause: 'VALIDATION_ERROR' },
    });
    await it.until(handler!.id, 'succeeded');
    expect(await eventsOf(it, id, 'run.handler_started')).toMatchObject([
      { data: { runId: handler!.id, workflowId: 'notify' } },
    ]);
    // Another process repeats a start that was in flight.
    const [[request, by]] = startsOfHandlers() as [Parameters<typeof starter.start>];
    expect(request.idempotency).toEqual({ key: `end/${id}/0`, request: null });
    expect(await starter.start(request, by)).toMatchObject({ id: handler!.id });
    start.mockClear();
    // The claim ends.
    it.clock.advance(seconds(11));
    const next = await it.start({ id: 'ship', on, steps: FAILS });
    await expect.poll(() => handlersOf(it, next)).toHaveLength(1);
    await endHandlers.stop();
    expect(startsOfHandlers().map(([{ handles }]) => handles)).toEqual([`${next}/0`]);
    expect(await runsOf(it, 'notify')).toHaveLength(2);
  });

  test('evaluates if and input, also of on.success and after a timeout, and not after a cancel', async () => {
    const it = await startWorkflow({
      projectDir: await project(NOTIFY),
      config: { ...config, ...(await store()) },
    });
    const notify = (input: string, more = {}) => ({
      workflow: 'notify',
      input: { text: cel(input) },
      ...more,
    });
    const on = {
      failure: [notify('run.status'), notify('"never"', { if: 'run.status == "failed"' })],
      success: notify('input.order + " " + run.output.main.v'),
    };
    const outputs = { v: cel('steps.note.output.v') };
    const jobs = (...steps: object[]) => ({
      main: { outputs, steps: [...steps, { id: 'note', uses: 'set', with: { v: 'done' } }] },
    });
    const succeeds = await it.start({ id: 'ok', on, jobs: jobs() }, { input: { order: 'a' } });
    const waits = jobs({ uses: 'signal', with: { name: 'go' } });
    const late = await it.start({ id: 'late', on, timeoutMs: 1000, jobs: waits });
    const stopped = await it.start({ id: 'stopped', on, jobs: waits });
    for (const id of [late, stopped]) await it.until(id, 'waiting');
    await it.fetch(`/workflows/runs/${stopped}/cancel`, {
      method: 'POST',
      headers: { 'x-tenant-id': 'default' },
    });
    it.clock.advance(1001);
    await it.services.engine.tick();
    await it.until(late, 'timed_out');
    await it.until(stopped, 'cancelled', 'waiting');
    await expect
      .poll(async () =>
        (await runsOf(it, 'notify'))
          .map(({ handles, input }) => [handles, (input as { text: string }).text])
          .toSorted(),
      )
      .toEqual(
        [
          [late, 'timed_out'],
          [succeeds, 'a done'],
        ].toSorted(),
      );
  });

  test('sends a message, once, to the application that the definition computes', async () => {
    const own = await store();
    const gateway = await startGateway({ config: own });
    const { emittedMessages } = gateway.services as EventTypeServices;
    const emitOfRun = emittedMessages.emitOfRun.bind(emittedMessages);
    const emits = vi.spyOn(emittedMessages, 'emitOfRun').mockImplementationOnce(async (...given) => {
      await emitOfRun(...given);
      throw new PlatformError('SERVICE_UNAVAILABLE', 'The gateway stops.');
    });
    const it = await startWorkflow({ config: own, peers: createPeers({ gateway: gateway.url }) });
    const message = {
      type: 'order.failed',
      data: { code: cel('run.error.code') },
      application: cel('input.customer'),
    };
    const id = await it.start(
      { id: 'ship', on: { failure: { message } }, steps: FAILS },
      { input: { customer: 'c-1' } },
    );
    await it.until(id, 'failed');
    await expect
      .poll(() => it.logs.lines)
      .toContainEqual(
        expect.objectContaining({ event: 'run.handler_failed', reasonCode: 'SERVICE_UNAVAILABLE' }),
      );
    await expect
      .poll(() => {
        it.clock.advance(seconds(1));
        return eventsOf(it, id, 'run.message_sent');
      })
      .toHaveLength(1);
    expect(emits).toHaveBeenCalledTimes(2);
    const { items } = await gateway.call(listMessages, { query: {} as never });
    expect(items).toMatchObject([{ type: 'order.failed', application: 'c-1' }]);
    const { data } = await gateway.call(getMessage, { params: { id: items[0]!.id as never } });
    expect(data).toEqual({ code: 'STEP_FAILED' });
  });

  test('waits until a missing workflow is registered, and reports what can never start', async () => {
    const strict = {
      ...NOTIFY,
      id: 'strict',
      inputs: { type: 'object', properties: { sku: { type: 'string' } }, required: ['sku'] },
    };
    const projectDir = await project(strict);
    const it = await startWorkflow({ projectDir, config: { ...config, ...(await store()) } });
    const on = { failure: [{ workflow: 'notify' }, { workflow: 'strict' }] };
    const id = await it.start({ id: 'ship', on, steps: FAILS });
    await expect
      .poll(() => eventsOf(it, id, 'run.handler_failed'))
      .toMatchObject([{ data: { handler: 1, code: 'VALIDATION_ERROR' } }]);
    expect(it.logs.lines).toContainEqual(
      expect.objectContaining({ event: 'run.handler_failed', reasonCode: 'WORKFLOW_NOT_FOUND' }),
    );
    await addFiles(projectDir, NOTIFY);
    await expect
      .poll(async () => (await it.call(listWorkflows)).items.map((each) => each.id), { timeout: 5000 })
      .toContain('notify');
    it.clock.advance(2000);
    await expect.poll(() => handlersOf(it, id), { timeout: 5000 }).toMatchObject([{ workflowId: 'notify' }]);
  });

  test('starts handlers of handlers three levels deep, children included', async () => {
    const again = { id: 'again', on: { failure: { workflow: 'again' } }, jobs: { main: { steps: FAILS } } };
    const it = await startWorkflow({
      projectDir: await project(again),
      config: { ...config, ...(await store()) },
    });
    const child = { id: 'child', uses: 'workflow', with: { id: 'again' } };
    await it.until(await it.start({ id: 'first', steps: [child] }), 'failed');
    await expect
      .poll(async () => (await runsOf(it, 'again')).filter(({ status }) => status === 'failed').length)
      .toBe(4);
    const [last] = await runsOf(it, 'again');
    await expect.poll(() => eventsOf(it, last!.id, 'run.handler_failed')).toHaveLength(1);
    expect(await runsOf(it, 'again')).toHaveLength(4);
  });

  test('starts each handler once when the service is killed again and again', async () => {
    const dataDir = await tempDir();
    await addFiles(dataDir, NOTIFY);
    const settings = { ...config, ...(await store()) };
    let service = await startProcess(dataDir, settings);
    const ids: string[] = [];
    for (let life = 0; life < 3; life++) {
      const begun = Array.from({ length: 10 }, () =>
        service.start({ id: 'ship', on: { failure: { workflow: 'notify' } }, steps: FAILS }),
      );
      ids.push(...(await Promise.all(begun)));
      await service.kill();
      service = await startProcess(dataDir, settings, service);
    }
    const handled = async () => {
      const runs = await Promise.all(ids.map((id) => service.run(id)));
      return runs.map(({ handlers }) => handlers?.length);
    };
    await expect.poll(handled, { timeout: 60_000, interval: 200 }).toEqual(ids.map(() => 1));
    expect(await runsOf(service, 'notify')).toHaveLength(ids.length);
  }, 90_000);
});

test('handlers of workflows that do not exist are reported until these are registered', async () => {
  const on = { failure: [{ workflow: 'page' }, { workflow: 'notfy' }] };
  const projectDir = await project(NOTIFY, { ...NOTIFY, id: 'ship', on } as never);
  const it = await startWorkflow({ projectDir, config });
  const unresolved = async () =>
    (await it.call(listWorkflows)).faults.map(({ path, message }) => `${path} ${message}`);
  expect(await unresolved()).toEqual([
    expect.stringMatching(/^on\.failure\[0\]\.workflow there is no workflow "page"$/),
    expect.stringMatching(/^on\.failure\[1\]\.workflow .*; did you mean "notify"\?$/),
  ]);
  expect((await it.call(listWorkflows)).items.map(({ id }) => id)).toContain('ship');
  await addFiles(projectDir, { ...NOTIFY, id: 'page' });
  await expect.poll(unresolved).toHaveLength(1);
});

describe('a run that ended before its handler started', () => {
  test('is handled by the next service', async () => {
    const dataDir = await tempDir();
    await addFiles(dataDir, NOTIFY);
    const first = await startProcess(dataDir, config);
    const id = await first.start({
      ...{ id: 'ship', on: { failure: { workflow: 'notify' } } },
      steps: [{ uses: 'signal', with: { name: 'go' } }],
    });
    await expect.poll(async () => (await first.run(id)).status).toBe('waiting');
    await first.kill();
    // A service that is killed between the end of a run and the start of its handler has written this.
    const store = await sqliteWorkflowStore({ dataDir, logger: silentLogger });
    const run = (await store.runs.find(null, id))!;
    const parts = { jobs: [], steps: [], attempts: [], events: [], logs: [], taken: [] };
    const ended = { ...run, status: 'failed' as const, wakeAt: null, finishedAt: Date.now() };
    const write = { ...parts, seq: run.seq, expect: { fence: null, status: run.status }, run: ended };
    await store.runs.write({ ...write, inboxSeen: 0, wakeParent: null, at: Date.now() });
    await store.close();
    const second = await startProcess(dataDir, config);
    await expect.poll(() => handlersOf(second, id)).toMatchObject([{ workflowId: 'notify' }]);
    await second.kill();
    const after = await sqliteWorkflowStore({ dataDir, logger: silentLogger });
    onTestFinished(() => after.close());
    expect(await after.endTasks.nextDue()).toBeNull();
  });
});
