import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tempDir } from '../../support/daemon.ts';
import { asCaller, send, startRest } from './support.ts';

/** The REST service with one plugin of these routes, whose handler is a plain function. */
async function startWith(rest: Record<string, unknown>) {
  const projectDir = await tempDir();
  const folder = join(projectDir, 'plugins/routes');
  await mkdir(folder, { recursive: true });
  const manifest = { schema: 'svc.plugin/3', id: 'routes', version: '1.0.0', rest };
  await writeFile(join(folder, 'svc.plugin.json'), JSON.stringify(manifest));
  await writeFile(join(folder, 'h.js'), 'export const show = (ctx) => ({ id: ctx.params.id ?? null });\n');
  return startRest({ projectDir });
}

const get = (path: string, security?: string[]) => ({
  method: 'GET',
  path,
  handler: 'h.js#show',
  ...(security ? { security } : {}),
});

test('a route path without a leading slash is the same path', async () => {
  const routes = [get('items'), get('items/:id'), get('')];
  const daemon = await startWith({ basePath: '/v1/plugins/routes', routes });
  const answers = await Promise.all(
    ['/items', '/items/7', ''].map(async (path) => {
      const { status, body } = await send(daemon, 'GET', `/api/v1/plugins/routes${path}`);
      return [status, body];
    }),
  );
  expect(answers).toEqual([
    [200, { id: null }],
    [200, { id: '7' }],
    [200, { id: null }],
  ]);
});

test('a path with and without the trailing slash is a duplicate', async () => {
  const daemon = await startWith({ basePath: '/v1/plugins/routes', routes: [get('items'), get('/items')] });
  const { broken } = daemon.services.plugins.registry;
  expect(broken[0]?.faults).toMatchObject([{ code: 'INVALID_MANIFEST', path: 'rest.routes[1].path' }]);
});

test('rest.defaults.security applies to routes without their own', async () => {
  const routes = [get('/default'), get('/open', ['none'])];
  const defaults = { security: ['user'], timeoutMs: 5000 };
  const daemon = await startWith({ basePath: '/v1/plugins/routes', defaults, security: ['none'], routes });
  const statuses = async (path: string) => [
    (await send(daemon, 'GET', `/api/v1/plugins/routes${path}`)).status,
    (await send(daemon, 'GET', `/api/v1/plugins/routes${path}`, { headers: asCaller('container:e1') }))
      .status,
    (await send(daemon, 'GET', `/api/v1/plugins/routes${path}`, { headers: asCaller('ci') })).status,
  ];
  expect(await statuses('/default')).toEqual([401, 403, 200]);
  expect(await statuses('/open')).toEqual([200, 200, 200]);
});
