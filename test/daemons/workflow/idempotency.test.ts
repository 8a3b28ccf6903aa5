import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { startRun, submitJob } from '../../../src/contracts/index.ts';
import { canonicalJson } from '../../../src/kit/data/json.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { tempDir } from '../../support/daemon.ts';
import { startWorkflow, type TestWorkflow } from './support/workflow.ts';

const STEP = '@acme/tools/add';

/** A project that is deployed again and again: each time the service stops and starts on what stands there. */
async function startProject() {
  const projectDir = await tempDir();
  const options = { projectDir, dataDir: join(projectDir, '.svc'), clock: manualClock(Date.UTC(2030, 0, 1)) };
  let it: TestWorkflow | undefined;
  for (const folder of ['workflows', 'plugins/tools'])
    await mkdir(join(projectDir, folder), { recursive: true });
  return {
    ...options,
    async deploy(files: Record<string, object>): Promise<void> {
      await it?.close();
      for (const [name, content] of Object.entries(files))
        await writeFile(join(projectDir, name), JSON.stringify(content));
      it = await startWorkflow(options);
    },
    async stop(): Promise<void> {
      await it?.close();
      it = undefined;
    },
    start: async (body: object) => (await it!.call(startRun, { body: body as never })).run.id as string,
    submit: async (body: object) => (await it!.call(submitJob, { body: body as never })).job.id as string,
  };
}

/** A workflow whose hash differs with its version. */
const order = (version: string, more: object = {}) => ({
  'workflows/order.yaml': {
    id: 'order',
    version,
    jobs: { main: { steps: [{ uses: 'signal', with: { name: 'go' } }] } },
    ...more,
  },
});
const inputs = (properties: object, required: string[] = []) => ({
  inputs: { type: 'object', properties, required },
});

describe('an idempotency key sent before a deploy', () => {
  test('finds its run after the deploy, and is 409 for another input, time, priority or workflow', async () => {
    const project = await startProject();
    await project.deploy({
      ...order('1'),
      'workflows/other.yaml': { ...order('1')['workflows/order.yaml'], id: 'other' },
    });
    const runAt = project.clock.now() + 60_000;
    const body = { workflowId: 'order', input: { id: 7 }, priority: 2, runAt, idempotencyKey: 'k' };
    const first = await project.start(body);
    await project.deploy(order('2'));
    expect(await project.start(body)).toBe(first);
    for (const other of [
      { workflowId: 'other' },
      { input: { id: 8 } },
      { priority: 3 },
      { runAt: runAt + 1 },
    ])
      await expect(project.start({ ...body, ...other }), JSON.stringify(other)).rejects.toMatchObject({
        code: 'CONFLICT',
      });
  });

  test('finds its run after changes of the input schema, and when the workflow was removed', async () => {
    const project = await startProject();
    await project.deploy(order('1', inputs({ id: { type: 'number' } })));
    const body = { workflowId: 'order', input: { id: 7 }, idempotencyKey: 'k' };
    const first = await project.start(body);
    await project.deploy(order('2', inputs({ id: { type: 'number' }, size: { default: 'm' } })));
    expect(await project.start(body)).toBe(first);
    await project.deploy(order('3', inputs({ id: { type: 'string' } })));
    expect(await project.start(body)).toBe(first);
    await expect(project.start({ ...body, input: { id: 8 } })).rejects.toMatchObject({ code: 'CONFLICT' });
    await expect(project.start({ ...body, idempotencyKey: 'new' })).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
    });
    await project.deploy({
      'workflows/order.yaml': { ...order('4')['workflows/order.yaml'], id: 'renamed' },
    });
    expect(await project.start(body)).toBe(first);
    await expect(project.start({ ...body, idempotencyKey: 'new' })).rejects.toMatchObject({
      code: 'WORKFLOW_NOT_FOUND',
    });
  });

  test('counts a definition sent along as it was sent', async () => {
    const project = await startProject();
    await project.deploy({});
    const definition = order('1')['workflows/order.yaml'];
    const body = { definition, input: {}, idempotencyKey: 'k' };
    const first = await project.start(body);
    const { id, version, jobs } = definition;
    expect(await project.start({ ...body, definition: { jobs, version, id } })).toBe(first);
    await expect(
      project.start({ ...body, definition: { ...definition, version: '2' } }),
    ).rejects.toMatchObject({
      code: 'CONFLICT',
    });
  });
});

const MANIFEST = {
  schema: 'svc.plugin/3',
  id: '@acme/tools',
  version: '1.0.0',
  jobs: [{ id: 'add', handler: 'tools.js#add' }],
};

async function startJobs() {
  const project = await startProject();
  await writeFile(join(project.projectDir, 'plugins/tools/tools.js'), 'export const add = () => 1;\n');
  const plugin = (manifest: object) => ({
    'plugins/tools/package.json': { name: '@acme/tools', version: '1.0.0', type: 'module' },
    'plugins/tools/svc.plugin.json': manifest,
  });
  return { ...project, plugin };
}

test("a job's retry and time limits do not count, its handler, input, time and priority do", async () => {
  const project = await startJobs();
  await project.deploy(project.plugin(MANIFEST));
  const body = { handler: STEP, input: { a: 1 }, idempotencyKey: 'k' };
  const first = await project.submit({ ...body, retry: { maxAttempts: 2 } });
  expect(await project.submit(body)).toBe(first);
  expect(await project.submit({ ...body, retry: { maxAttempts: 5 }, timeoutMs: 1000 })).toBe(first);
  for (const other of [{ input: { a: 2 } }, { priority: 1 }, { runAt: project.clock.now() + 60_000 }])
    await expect(project.submit({ ...body, ...other })).rejects.toMatchObject({ code: 'CONFLICT' });
  const [job] = MANIFEST.jobs;
  await project.deploy(project.plugin({ ...MANIFEST, jobs: [{ ...job, timeoutMs: 9000 }] }));
  expect(await project.submit(body)).toBe(first);
  await project.deploy(project.plugin({ ...MANIFEST, jobs: [{ ...job, id: 'renamed' }] }));
  expect(await project.submit(body)).toBe(first);
});

test('a key is free again after seven days, also before it is pruned', async () => {
  const project = await startProject();
  await project.deploy(order('1'));
  const body = { workflowId: 'order', input: {}, idempotencyKey: 'k' };
  const first = await project.start(body);
  project.clock.advance(7 * 24 * 3600_000 - 1);
  expect(await project.start(body)).toBe(first);
  project.clock.advance(1);
  expect(await project.start(body)).not.toBe(first);
});

interface EarlierRow {
  key: string;
  hash: string;
  input: string;
  priority: number;
  kind: string;
}

/** Digests as versions before wrote them: over the hash of the definition and the input with its defaults. */
function asEarlierVersion(file: string): void {
  const db = new Sqlite(file);
  const rows = db
    .prepare<[], EarlierRow>(
      `select key, definition_hash as hash, input, priority, kind from idempotency join run on run.id = run_id`,
    )
    .all();
  const put = db.prepare('update idempotency set digest = :digest where key = :key');
  for (const { key, input, ...row } of rows) {
    const text = canonicalJson({ ...row, input: JSON.parse(input), runAt: null });
    put.run({ key, digest: createHash('sha256').update(text).digest('base64url') });
  }
  db.close();
  expect(rows).toHaveLength(3);
}

test('keys that an earlier version stored find their runs, also after a deploy', async () => {
  const project = await startJobs();
  const schema = inputs({ id: { type: 'number' }, size: { default: 'm' } });
  await project.deploy({ ...order('1', schema), ...project.plugin(MANIFEST) });
  const bodies = {
    named: { workflowId: 'order', input: { id: 7 } },
    sent: { definition: order('9')['workflows/order.yaml'], input: {} },
  };
  const named = await project.start({ ...bodies.named, idempotencyKey: 'named' });
  const sent = await project.start({ ...bodies.sent, idempotencyKey: 'sent' });
  const job = await project.submit({ handler: STEP, input: 5, idempotencyKey: 'job', retry: {} });
  await project.stop();
  asEarlierVersion(join(project.dataDir, 'workflow.db'));

  await project.deploy(order('2', schema));
  expect(await project.start({ ...bodies.named, idempotencyKey: 'named' })).toBe(named);
  expect(await project.start({ ...bodies.sent, idempotencyKey: 'sent' })).toBe(sent);
  expect(await project.submit({ handler: STEP, input: 5, idempotencyKey: 'job' })).toBe(job);
  for (const [key, body] of Object.entries({ named: bodies.sent, sent: bodies.named }))
    await expect(project.start({ ...body, idempotencyKey: key })).rejects.toMatchObject({ code: 'CONFLICT' });
  await expect(project.submit({ handler: STEP, input: 6, idempotencyKey: 'job' })).rejects.toMatchObject({
    code: 'CONFLICT',
  });
});

test('keys of handlers of ended runs are refused to callers', async () => {
  const it = await startWorkflow();
  const started = it.start({ steps: [{ uses: 'set' }] }, { idempotencyKey: 'end/run_1/0' });
  await expect(started).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
    message: expect.stringContaining('"end/run_1/0" starts with "end/"'),
  });
});
