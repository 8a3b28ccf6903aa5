import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tempDir } from '../../support/daemon.ts';
import { writeFiles } from '../marketplace/support.ts';
import { send, startRest, untilLoad } from './support.ts';

const PATH = '/api/v1/plugins/narrow';

async function startNarrow(manifest: object, config: Record<string, unknown> = {}) {
  const projectDir = await tempDir();
  await writeFiles(join(projectDir, 'plugins/narrow'), {
    'package.json': { name: 'narrow', type: 'module' },
    'svc.plugin.json': {
      schema: 'svc.plugin/3',
      id: 'narrow',
      version: '1.0.0',
      rest: {
        basePath: '/v1/plugins/narrow',
        routes: [
          { method: 'GET', path: '/', handler: 'routes.js#config' },
          { method: 'GET', path: '/slow', handler: 'routes.js#slow' },
        ],
      },
      ...manifest,
    },
    'routes.js': `
      export const config = (ctx) => ctx.config;
      export const slow = () => new Promise((resolve) => setTimeout(() => resolve('done'), 1500));`,
  });
  return startRest({ projectDir, dataDir: join(projectDir, '.svc'), config });
}

test('beyond the limits of running and queued calls, 503 has Retry-After', async () => {
  const rest = await startNarrow(
    { permissions: { quotas: { queue: 1 } } },
    { execution: { worker: { maxProcesses: 1 } } },
  );
  await send(rest, 'GET', PATH);
  const [running, waiting] = [send(rest, 'GET', `${PATH}/slow`), send(rest, 'GET', `${PATH}/slow`)];
  await untilLoad(rest, 'narrow', 'queued');
  const refused = await send(rest, 'GET', `${PATH}/slow`);
  expect([refused.status, refused.body]).toMatchObject([
    503,
    { error: { code: 'SERVICE_UNAVAILABLE', details: { retryAfterSeconds: expect.any(Number) } } },
  ]);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await Promise.all([running, waiting])).map(({ body }) => body)).toEqual(['done', 'done']);
});

test('calls that a plugin allows to share a process run concurrently', async () => {
  const rest = await startNarrow(
    { permissions: { quotas: { concurrency: 4, queue: 0 } } },
    { execution: { worker: { maxProcesses: 1 } } },
  );
  expect((await send(rest, 'GET', PATH)).status).toBe(503);
});

test('settings are checked by the schema of the manifest before the plugin loads', async () => {
  const configSchema = {
    type: 'object',
    properties: { colour: { enum: ['red', 'green'] } },
    required: ['colour'],
    additionalProperties: false,
  };
  const fine = await startNarrow({ configSchema }, { pluginConfig: { narrow: { colour: 'green' } } });
  expect((await send(fine, 'GET', PATH)).body).toEqual({ colour: 'green' });
  const wrong = await startNarrow(
    { configSchema },
    { pluginConfig: { narrow: { colour: 'blue', size: 3 } } },
  );
  expect((await send(wrong, 'GET', PATH)).status).toBe(404);
  expect(wrong.logs.lines).toContainEqual(
    expect.objectContaining({
      event: 'plugin.broken',
      pluginId: 'narrow',
      message: expect.stringContaining('pluginConfig["narrow"].colour of svc.config.json'),
    }),
  );
});
