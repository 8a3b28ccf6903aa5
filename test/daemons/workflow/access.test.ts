import { expect, test } from 'vitest';
import { serviceHeaders } from '../../../src/http/index.ts';
import { TEST_KEYS } from '../../support/daemon.ts';
import { startWorkflow } from './support/workflow.ts';

test('in development the port accepts calls of programs and local pages, and of no other page', async () => {
  const it = await startWorkflow();
  const cancel = async (headers: Record<string, string>) => {
    // Without a body it needs no leave of the browser.
    const response = await it.fetch('/workflows/runs/run_x/cancel', { method: 'POST', headers });
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    return error;
  };
  for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1.evil.example'])
    expect(await cancel({ origin })).toMatchObject({
      code: 'FORBIDDEN',
      message: expect.stringContaining('gateway.cors.origins'),
    });
  const { host } = new URL(it.url);
  for (const origin of ['http://localhost:3000', 'http://[::1]:8080', `http://${host}`])
    expect((await cancel({ origin })).code).toBe('WORKFLOW_RUN_NOT_FOUND');
  expect((await cancel({})).code).toBe('WORKFLOW_RUN_NOT_FOUND');
  // The gateway has decided about origins itself.
  const trusted = serviceHeaders(TEST_KEYS.internalSecret, { namespaceId: 'default' });
  expect((await cancel({ ...trusted, origin: 'https://evil.example' })).code).toBe('WORKFLOW_RUN_NOT_FOUND');
  expect(it.logs.lines.filter(({ reasonCode }) => reasonCode === 'FOREIGN_ORIGIN')).toHaveLength(3);
});

test('where identity is required, starting a run needs the service key', async () => {
  const it = await startWorkflow({ config: { auth: { mode: 'required' } } });
  const body = JSON.stringify({ definition: { id: 'd', jobs: { main: { steps: [{ uses: 'set' }] } } } });
  const start = async (headers: Record<string, string>) =>
    (
      await it.fetch('/api/v1/workflows/runs', {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body,
      })
    ).status;
  expect(await start({})).toBe(401);
  expect(await start({ 'x-svc-host-id': 'operator', 'x-tenant-id': 'default' })).toBe(401);
  expect(await start({ 'x-svc-service-key': 'guessed' })).toBe(401);
  expect(await start(serviceHeaders(TEST_KEYS.internalSecret))).toBe(202);
});
