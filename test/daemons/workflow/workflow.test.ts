import { expect, test } from 'vitest';
import { workflow } from '../../../src/daemons/workflow/index.ts';
import { serviceHeaders } from '../../../src/http/index.ts';
import { startTestDaemon, TEST_KEYS } from '../../support/daemon.ts';
import { openApiFaults } from '../../support/openapi.ts';

test('where identity is required, calls without one are refused', async () => {
  const daemon = await startTestDaemon(workflow, { config: { auth: { mode: 'required' } } });
  const path = '/api/v1/workflows/runs';
  expect((await daemon.fetch(path)).status).toBe(401);
  expect((await daemon.fetch(path, { headers: { 'x-svc-service-key': 'guess' } })).status).toBe(401);
  expect((await daemon.fetch(path, { headers: serviceHeaders(TEST_KEYS.internalSecret) })).status).toBe(200);
  expect((await daemon.fetch('/health')).status).toBe(200);
});

test('it is alive on both health paths, and describes itself', async () => {
  const daemon = await startTestDaemon(workflow);
  for (const path of ['/health', '/api/v1/health']) {
    expect(await (await daemon.fetch(path)).json()).toMatchObject({ status: 'ok', service: 'workflow' });
  }
  const document = (await (await daemon.fetch('/openapi.json')).json()) as { paths: Record<string, object> };
  expect(await openApiFaults(document)).toEqual([]);
  expect(Object.keys(document.paths)).toContain('/api/v1/workflows/runs/{runId}/steps');
  expect((await daemon.fetch('/docs')).status).toBe(200);
});

test('runs and jobs are counted under the names of the spec', async () => {
  const daemon = await startTestDaemon(workflow);
  const { metrics } = daemon.services;
  metrics.runEnded('nightly', 'succeeded', 2);
  metrics.jobStarted();
  metrics.jobStarted();
  metrics.jobEnded();
  const text = await (await daemon.fetch('/metrics')).text();
  expect(text).toContain('# TYPE svc_workflow_runs_total counter');
  expect(text).toContain(
    'svc_workflow_runs_total{service="workflow",workflow="nightly",status="succeeded"} 1',
  );
  expect(text).toContain('# TYPE svc_workflow_run_duration_seconds histogram');
  expect(text).toContain(
    'svc_workflow_run_duration_seconds_sum{service="workflow",workflow="nightly",status="succeeded"} 2',
  );
  expect(text).toContain('# TYPE svc_workflow_jobs_in_flight gauge');
  expect(text).toContain('svc_workflow_jobs_in_flight{service="workflow"} 1');
});
