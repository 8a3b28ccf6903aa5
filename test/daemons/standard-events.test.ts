import { expect, test } from 'vitest';
import {
  AnalyticsEvent,
  disablePlugin,
  enablePlugin,
  installPlugin,
  linkPlugin,
  uninstallPlugin,
  unlinkPlugin,
  updatePlugin,
} from '../../src/contracts/index.ts';
import { greeter, pluginArchive, pluginFolder, startMarketplace } from './marketplace/support.ts';
import { startWorkflow, type TestWorkflow } from './workflow/support/workflow.ts';

/** Payloads of the standard types that are told elsewhere: plugin and cache in rest/analytics.test.ts, adapters in adapters.test.ts. */

const eventsOf = ({ logs }: Pick<TestWorkflow, 'logs'>, type: string) =>
  logs.lines.filter((line) => line.type === type);

test('a run that ended is an event with exactly the fields of the specification, by how it ended', async () => {
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

test('a cancelled run is a failed one that says so', async () => {
  const it = await startWorkflow();
  const id = await it.start({ steps: [{ id: 'wait', uses: 'wait', with: { ms: 3_600_000 } }] });
  await it.until(id, 'waiting');
  await it.fetch(`/api/v1/workflows/runs/${id}/cancel`, { method: 'POST' });
  await it.fetch(`/workflows/runs/${id}/cancel`, { method: 'POST' });
  await it.until(id, 'cancelled');
  await expect
    .poll(() => eventsOf(it, 'workflow.run.failed'))
    .toMatchObject([{ runId: id, ctx: { status: 'cancelled' } }]);
});

test('each change of what is installed is an event of its own', async () => {
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
