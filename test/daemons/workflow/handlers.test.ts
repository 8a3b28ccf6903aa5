import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  cancelJob,
  getJob,
  listJobs,
  listRunEvents,
  listRunLogs,
  listRuns,
  listSchedules,
  listWorkflows,
  startRun,
  submitJob,
} from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { LEDGER_CONFIG, startLedger } from './support/ledger.ts';
import { cel, startWorkflow, type TestWorkflow } from './support/workflow.ts';

const MANIFEST = {
  schema: 'svc.plugin/3',
  id: '@acme/tools',
  version: '1.0.0',
  commands: [
    { id: 'add', handler: 'tools.js#add' },
    { id: 'refuse', handler: 'tools.js#refuse' },
    { id: 'break', handler: 'tools.js#breaks' },
    { id: 'hang', handler: 'tools.js#hang' },
  ],
  jobs: [{ id: 'sum', handler: 'tools.js#sum' }],
  schedules: [
    { workflow: 'adding', cron: '0 * * * *', input: { a: 1 } },
    { workflow: 'nothing', cron: '0 * * * *' },
    { workflow: 'adding', cron: 'never' },
  ],
  workflows: [
    {
      id: 'adding',
      outputs: { sum: cel('jobs.main.outputs.sum') },
      jobs: {
        main: {
          outputs: { sum: cel('steps.add.output.sum') },
          steps: [{ id: 'add', uses: '@acme/tools/add', with: { a: cel('input.a'), b: 2 } }],
        },
      },
    },
  ],
};
const TOOLS = `
export const add = (ctx, { a, b }) => {
  ctx.log.info('adding ' + a + ' and ' + b);
  return { sum: a + b, host: ctx.host, context: ctx.hostContext };
};
export const refuse = (ctx, { class: errorClass }) =>
  ({ exitCode: 3, error: { code: 'OUT_OF_STOCK', message: 'nothing left', details: { errorClass } } });
export const breaks = () => { throw new Error('boom'); };
export const hang = (ctx) => new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(new Error('aborted'))));
export const sum = (ctx, { numbers, fail }) => {
  if (fail) throw new Error('cannot');
  return { total: numbers.reduce((a, b) => a + b, 0), context: ctx.hostContext };
};
`;

async function startWithTools(): Promise<TestWorkflow> {
  const projectDir = await tempDir();
  const folder = join(projectDir, 'plugins/tools');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'svc.plugin.json'), JSON.stringify(MANIFEST));
  await writeFile(
    join(folder, 'package.json'),
    '{"name": "@acme/tools", "version": "1.0.0", "type": "module"}',
  );
  await writeFile(join(folder, 'tools.js'), TOOLS);
  return startWorkflow({ projectDir, config: LEDGER_CONFIG });
}

describe('plugin handlers', () => {
  test("run as steps of a plugin's workflow, with their log lines on the run", async () => {
    const it = await startWithTools();
    expect((await it.call(listWorkflows)).items.map(({ id, source }) => [id, source])).toEqual([
      ['adding', '@acme/tools'],
    ]);
    const { run } = await it.call(startRun, { body: { workflowId: 'adding', input: { a: 40 } } as never });
    expect((await it.until(run.id, 'succeeded')).output).toEqual({ sum: 42 });
    expect((await it.step(run.id, 'main.add')).output).toMatchObject({
      host: 'workflow',
      context: { runId: run.id, workflowId: 'adding', stepId: 'main.add', attempt: 1 },
    });
    const lines = async () =>
      (await it.call(listRunLogs, { params: { runId: run.id }, query: { limit: 50 } })).items;
    await expect
      .poll(lines)
      .toMatchObject([{ level: 'info', message: 'adding 40 and 2', stepId: 'main.add', jobId: 'main' }]);
    const text = await (await it.fetch('/metrics')).text();
    expect(text).toContain(
      'svc_workflow_runs_total{service="workflow",workflow="adding",status="succeeded"} 1',
    );
    await expect
      .poll(() => it.logs.lines.find((line) => line.type === 'workflow.run.completed'))
      .toMatchObject({
        runId: run.id,
        payload: { workflowId: 'adding', runId: run.id, durationMs: 0, jobsTotal: 1, jobsFailed: 0 },
      });
  });

  test("run by the plans of a plugin's manifest; faulty plans are told", async () => {
    const it = await startWithTools();
    const { items } = await it.call(listSchedules);
    expect(items).toMatchObject([
      {
        id: expect.stringMatching(/^@acme\/tools:[0-9a-f]{8}$/),
        workflowId: 'adding',
        nextAt: it.clock.now() + 3_600_000,
      },
    ]);
    const { faults } = await it.call(listWorkflows);
    expect(faults.map(({ source, path }) => [source, path])).toEqual([
      ['@acme/tools', 'schedules[1].workflow'],
      ['@acme/tools', 'schedules[2].cron'],
    ]);
    it.clock.advance(3_600_000);
    await it.services.engine.tick();
    const runs = async () => (await it.call(listRuns, { query: { limit: 5 } as never })).items;
    await expect.poll(async () => (await runs())[0]?.status).toBe('succeeded');
    expect((await runs())[0]).toMatchObject({ trigger: 'schedule', output: { sum: 3 } });
  });

  test('fail with their own code, or as STEP_FAILED when they throw', async () => {
    const it = await startWithTools();
    const errorOf = async (uses: string, more: object = {}) => {
      const id = await it.start({ steps: [{ id: 's', uses, ...more }] });
      await it.until(id, 'failed', 'waiting');
      return it.step(id, 'main.s');
    };
    expect((await errorOf('@acme/tools/refuse')).error).toMatchObject({
      code: 'OUT_OF_STOCK',
      message: 'nothing left',
    });
    expect((await errorOf('@acme/tools/break')).error).toMatchObject({
      code: 'STEP_FAILED',
      message: expect.stringContaining('boom'),
    });
    expect((await errorOf('@acme/tools/nope')).error).toMatchObject({ code: 'INVALID_HANDLER' });
    expect(await errorOf('@acme/nobody/x')).toMatchObject({
      waitingFor: { for: 'plugin', name: '@acme/nobody' },
    });
    const classed = await errorOf('@acme/tools/refuse', {
      with: { class: 'rate_limit' },
      retry: { maxAttempts: 2 },
    });
    expect(classed).toMatchObject({
      status: 'waiting',
      waitingFor: { for: 'retry' },
      history: [{ errorClass: 'rate_limit' }],
    });
    expect(await errorOf('@acme/tools/break', { retry: { maxAttempts: 2 } })).toMatchObject({
      status: 'waiting',
      waitingFor: { for: 'retry' },
      history: [{ errorClass: 'code' }],
    });
  });

  test('get a cancel by their signal', async () => {
    const it = await startWithTools();
    const id = await it.start({ steps: [{ id: 's', uses: '@acme/tools/hang' }] });
    await expect.poll(async () => (await it.step(id, 'main.s')).status).toBe('running');
    await it.services.runs.cancel('default', id);
    await it.until(id, 'cancelled');
    expect((await it.step(id, 'main.s')).status).toBe('cancelled');
  });
});

describe('background jobs', () => {
  const submit = (it: TestWorkflow, body: object) =>
    it.call(submitJob, { body: { handler: '@acme/tools/sum', ...body } as never });
  const job = (it: TestWorkflow, id: string) => it.call(getJob, { params: { jobId: id as never } });

  test('run a plugin handler, and tell their result', async () => {
    const it = await startWithTools();
    const { job: submitted } = await submit(it, { input: { numbers: [1, 2, 3] } });
    expect(submitted).toMatchObject({ handler: '@acme/tools/sum', status: 'queued', attempts: 0 });
    await expect.poll(async () => (await job(it, submitted.id)).status).toBe('succeeded');
    expect(await job(it, submitted.id)).toMatchObject({
      attempts: 1,
      result: { total: 6, context: { host: 'job', jobId: submitted.id, attempt: 1 } },
      error: null,
    });
  });

  test('fail with the error of their handler, after the retries asked for', async () => {
    const it = await startWithTools();
    const { job: submitted } = await submit(it, {
      input: { fail: true },
      retry: { maxAttempts: 2, on: ['code'], jitter: 'none' },
    });
    await expect.poll(async () => (await job(it, submitted.id)).status).toBe('waiting');
    it.clock.advance(1000);
    await it.services.engine.tick();
    await expect.poll(async () => (await job(it, submitted.id)).status).toBe('failed');
    expect(await job(it, submitted.id)).toMatchObject({
      attempts: 2,
      error: { code: 'STEP_FAILED', message: expect.stringContaining('cannot') },
    });
  });

  test('an unknown handler is JOB_NOT_FOUND; a key submits once', async () => {
    const it = await startWithTools();
    for (const handler of ['@acme/tools/nope', '@acme/nobody/sum'])
      await expect(submit(it, { handler })).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
    const keyed = { input: { numbers: [1] }, idempotencyKey: 'once' };
    const [{ job: first }, { job: second }] = [await submit(it, keyed), await submit(it, keyed)];
    expect(second.id).toBe(first.id);
    await expect(submit(it, { ...keyed, input: { numbers: [2] } })).rejects.toMatchObject({
      code: 'CONFLICT',
    });
  });

  test('are listed and cancelled apart from runs', async () => {
    const it = await startWithTools();
    const { job: planned } = await submit(it, {
      input: { numbers: [] },
      runAt: it.clock.now() + 60_000,
      priority: 3,
    });
    await it.start({ steps: [{ uses: 'set' }] });
    const { items } = await it.call(listJobs, { query: { limit: 10 } as never });
    expect(items.map(({ id, queuedReason, priority }) => [id, queuedReason, priority])).toEqual([
      [planned.id, expect.stringContaining('planned'), 3],
    ]);
    expect(await it.call(cancelJob, { params: { jobId: planned.id } })).toEqual({
      cancelled: true,
      status: 'cancelled',
    });
    await expect(it.call(cancelJob, { params: { jobId: planned.id } })).rejects.toMatchObject({
      code: 'WORKFLOW_ALREADY_CANCELLED',
    });
    await expect(job(it, 'job_none')).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
  });
});

describe('live', () => {
  async function* eventsOf(
    response: Response,
  ): AsyncGenerator<{ id: string; event: string; data: Record<string, unknown> }> {
    let rest = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream() as never)) {
      rest += chunk;
      for (let end = rest.indexOf('\n\n'); end !== -1; end = rest.indexOf('\n\n')) {
        const block = rest.slice(0, end);
        rest = rest.slice(end + 2);
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1] ?? '';
        if (block.includes('data: '))
          yield { id: field('id'), event: field('event'), data: JSON.parse(field('data')) };
      }
    }
  }

  test('events follow a run to its end, and a stream goes on where it broke', async () => {
    const it = await startWorkflow();
    const id = await it.start({ steps: [{ uses: 'signal', with: { name: 'go' } }, { uses: 'set' }] });
    await it.until(id, 'waiting');
    const open = (headers: Record<string, string> = {}) =>
      it.fetch(`/api/v1/workflows/runs/${id}/events`, {
        headers: { accept: 'text/event-stream', ...headers },
      });
    const seen: Array<{ id: string; type: unknown }> = [];
    const first = await open();
    expect(first.headers.get('content-type')).toContain('text/event-stream');
    for await (const { id: at, data } of eventsOf(first)) {
      seen.push({ id: at, type: data.type });
      if (data.type === 'run.waiting') break;
    }
    await it.services.runs.signal('default', id, 'go', null);
    let ended = false;
    for await (const { id: at, event, data } of eventsOf(await open({ 'last-event-id': seen.at(-1)!.id }))) {
      if (event === 'end') ended = true;
      else seen.push({ id: at, type: data.type });
    }
    expect(ended).toBe(true);
    expect(new Set(seen.map(({ id: at }) => at)).size).toBe(seen.length);
    const all = await it.call(listRunEvents, { params: { runId: id as never }, query: { limit: 1000 } });
    expect(seen.map(({ type }) => type)).toEqual(all.items.map(({ type }) => type));
  });

  test('log lines come as they are written; an unknown run is an ordinary 404', async () => {
    const [it, ledger] = [await startWorkflow({ config: LEDGER_CONFIG }), await startLedger()];
    let letGo = (): void => {};
    ledger.answer('slow', (_, response) => {
      letGo = () => response.end();
    });
    const id = await it.start({ steps: [{ uses: 'http', with: { url: `${ledger.url}/slow` } }] });
    const stream = await it.fetch(`/api/v1/workflows/runs/${id}/logs`, {
      headers: { accept: 'text/event-stream' },
    });
    for await (const { event, data } of eventsOf(stream)) {
      if (event === 'end') break;
      expect(data).toMatchObject({ level: 'debug', message: `GET ${ledger.url}/slow` });
      await expect.poll(() => ledger.count('slow')).toBe(1);
      letGo();
    }
    const missing = await it.fetch('/api/v1/workflows/runs/run_none/logs', {
      headers: { accept: 'text/event-stream' },
    });
    expect(missing.status).toBe(404);
  });

  test('a stream that waits does not keep the service from stopping', async () => {
    const it = await startWorkflow();
    const id = await it.start({ steps: [{ uses: 'signal', with: { name: 'never' } }] });
    await it.until(id, 'waiting');
    const stream = await it.fetch(`/api/v1/workflows/runs/${id}/events`, {
      headers: { accept: 'text/event-stream' },
    });
    const text = stream.text();
    const startedAt = performance.now();
    await it.close();
    expect(await text).toContain('"type":"run.waiting"');
    expect(performance.now() - startedAt).toBeLessThan(5000);
  });
});
