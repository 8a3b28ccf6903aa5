import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  AnalyticsEvent,
  cancelJob,
  disablePlugin,
  enablePlugin,
  installPlugin,
  linkPlugin,
  submitJob,
  uninstallPlugin,
  unlinkPlugin,
  updatePlugin,
} from '../../src/contracts/index.ts';
import { tempDir } from '../support/daemon.ts';
import { greeter, pluginArchive, pluginFolder, startMarketplace } from './marketplace/support.ts';
import { startWorkflow, type TestWorkflow } from './workflow/support/workflow.ts';

/** Payloads of the standard types that are told elsewhere: plugin and cache in rest/analytics.test.ts, adapters in adapters.test.ts. */

/** The line that is written when a run has been reported, its event included. */
const endReported = ({ logs }: Pick<TestWorkflow, 'logs'>, id: string) =>
  expect.poll(() => logs.lines.some(({ message }) => String(message).startsWith(`Run ${id} of `))).toBe(true);

async function startWithJobs(): Promise<TestWorkflow> {
  const projectDir = await tempDir();
  const folder = join(projectDir, 'plugins/jobs');
  await mkdir(folder, { recursive: true });
  const ids = ['fine', 'broken', 'hanging'];
  const jobs = ids.map((id) => ({ id, handler: `jobs.js#${id}` }));
  await writeFile(
    join(folder, 'svc.plugin.json'),
    JSON.stringify({ schema: 'svc.plugin/3', id: 'jobs', version: '1.0.0', jobs }),
  );
  await writeFile(join(folder, 'package.json'), '{"name": "jobs", "version": "1.0.0", "type": "module"}');
  await writeFile(
    join(folder, 'jobs.js'),
    `export const fine = () => 1;
export const broken = () => { throw new Error('broken'); };
export const hanging = (ctx) => new Promise((_, reject) => ctx.signal.addEventListener('abort', reject));
`,
  );
  return startWorkflow({ projectDir });
}

const eventsOf = ({ logs }: Pick<TestWorkflow, 'logs'>, type: string) =>
  logs.lines.filter((line) => line.type === type);

test('an ended run is an event with exactly the fields of the specification, by its outcome', async () => {
  const it = await startWorkflow();
  const run = async (jobs: Record<string, unknown>, status: string) => {
    const id = await it.start({ id: 'counted', jobs }, { tenant: 'default' });
    await it.until(id, status);
    return id;
  };
  const fine = { steps: [{ id: 'set', uses: 'set', with: { a: 1 } }] };
  const broken = { steps: [{ id: 'call', uses: 'http', with: { url: 'http://127.0.0.1:9/' } }] };
  const succeeded = await run({ a: fine, b: fine }, 'succeeded');
  const failed = await run({ a: fine, b: broken, c: { ...fine, needs: 'b' } }, 'failed');

  await expect.poll(() => eventsOf(it, 'workflow.run.failed').length).toBe(1);
  const payload = { workflowId: 'counted', durationMs: expect.any(Number) };
  const [completed] = eventsOf(it, 'workflow.run.completed');
  expect(completed!.payload).toEqual({ ...payload, runId: succeeded, jobsTotal: 2, jobsFailed: 0 });
  const [notCompleted] = eventsOf(it, 'workflow.run.failed');
  expect(notCompleted!.payload).toEqual({ ...payload, runId: failed, jobsTotal: 3, jobsFailed: 1 });
  for (const event of [completed, notCompleted]) {
    expect(event).toMatchObject({ source: { product: 'svc' }, ctx: { tenantId: 'default' } });
    expect(AnalyticsEvent.safeParse({ ...event, ingestTs: event!.ts }).success).toBe(true);
  }
  expect([completed!.runId, notCompleted!.runId]).toEqual([succeeded, failed]);
});

test('a cancelled run ends without an event, and one that timed out has failed', async () => {
  const it = await startWorkflow();
  const steps = [{ id: 'wait', uses: 'wait', with: { ms: 3_600_000 } }];
  const id = await it.start({ steps });
  await it.until(id, 'waiting');
  await it.fetch(`/api/v1/workflows/runs/${id}/cancel`, { method: 'POST' });
  await it.fetch(`/workflows/runs/${id}/cancel`, { method: 'POST' });
  await it.until(id, 'cancelled');
  await endReported(it, id);
  const late = await it.start({ steps, timeoutMs: 1000 });
  await it.until(late, 'waiting');
  it.clock.advance(1000);
  await it.services.engine.tick();
  await it.until(late, 'timed_out');
  await endReported(it, late);
  expect(eventsOf(it, 'workflow.run.completed')).toEqual([]);
  expect(eventsOf(it, 'workflow.run.failed')).toMatchObject([{ runId: late, ctx: { status: 'timed_out' } }]);
});

test('a background job yields no run event, however it ends', async () => {
  const it = await startWithJobs();
  const jobs = await Promise.all(
    ['fine', 'broken', 'hanging'].map(async (name) => {
      const { job } = await it.call(submitJob, { body: { handler: `jobs/${name}`, input: {}, priority: 0 } });
      return job.id;
    }),
  );
  const [, , hanging] = jobs;
  await expect.poll(async () => (await it.run(hanging!)).status).toBe('running');
  await it.call(cancelJob, { params: { jobId: hanging as never } });
  for (const id of jobs) await endReported(it, id);
  expect(it.logs.lines.filter(({ type }) => String(type).startsWith('workflow.run.'))).toEqual([]);
  await expect.poll(() => eventsOf(it, 'plugin.command.completed').length).toBe(1);
});

test('each change of an installation is its own event', async () => {
  const daemon = await startMarketplace();
  const params = { pluginId: '@acme/greeter' as never };
  const archive = async (version: string) => ({ body: { source: await pluginArchive(greeter(version)) } });
  await daemon.call(installPlugin, await archive('1.0.0'));
  await daemon.call(updatePlugin, { params, ...(await archive('2.0.0')) });
  await daemon.call(disablePlugin, { params });
  await daemon.call(enablePlugin, { params });
  await daemon.call(uninstallPlugin, { params });
  await daemon.call(linkPlugin, { body: { folder: await pluginFolder(greeter('3.0.0')) } });
  await daemon.call(unlinkPlugin, { params });
  const told = daemon.logs.lines.filter(
    ({ schema, type }) => schema && String(type).startsWith('marketplace.'),
  );
  const event = (what: string, version: string) => [
    `marketplace.plugin.${what}`,
    { pluginId: '@acme/greeter', version },
  ];
  expect(told.map(({ type, payload }) => [type, payload])).toEqual([
    event('installed', '1.0.0'),
    event('updated', '2.0.0'),
    event('disabled', '2.0.0'),
    event('enabled', '2.0.0'),
    event('uninstalled', '2.0.0'),
    event('linked', '3.0.0'),
    event('unlinked', '3.0.0'),
  ]);
});
