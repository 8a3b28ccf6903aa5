import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { mergeOpenApi } from '../../../src/daemons/gateway/domain/merge-documents.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { rest } from '../../../src/daemons/rest/index.ts';
import { workflow } from '../../../src/daemons/workflow/index.ts';
import type { OpenApiDocument } from '../../../src/http/index.ts';
import { packageRoot } from '../../../src/kit/files/paths.ts';
import { startTestDaemon } from '../../support/daemon.ts';
import { openApiFaults } from '../../support/openapi.ts';
import { startGateway } from './support/start-gateway.ts';

type Described = OpenApiDocument & { 'x-svc-unavailable'?: string[] };

async function merged(gateway: { fetch(path: string): Promise<Response> }): Promise<Described> {
  const response = await gateway.fetch('/openapi-merged.json');
  expect(response.status).toBe(200);
  return (await response.json()) as Described;
}

test('the merged description has the routes of gateway, REST API and workflow daemon, and is valid', async () => {
  const [restDaemon, workflowDaemon] = await Promise.all([startTestDaemon(rest), startTestDaemon(workflow)]);
  const gateway = await startGateway({
    peers: createPeers({ rest: restDaemon.url, workflow: workflowDaemon.url }),
  });
  const document = await merged(gateway);
  expect(await openApiFaults(document)).toEqual([]);
  expect(document['x-svc-unavailable']).toBeUndefined();
  const paths = Object.keys(document.paths);
  for (const path of [
    '/auth/token',
    '/api/v1/hosts',
    '/api/v1/workflows/runs',
    '/api/v1/jobs',
    '/api/v1/health',
  ]) {
    expect(paths).toContain(path);
  }
  const run = document.paths['/api/v1/workflows/runs']?.post as { security: unknown };
  expect(run.security).toEqual([{ bearer: [] }]);
});

test('the gateway’s own description has only its own routes', async () => {
  const gateway = await startGateway();
  const document = (await (await gateway.fetch('/openapi.json')).json()) as Described;
  expect(await openApiFaults(document)).toEqual([]);
  expect(Object.keys(document.paths)).toContain('/hosts/register');
  expect(Object.keys(document.paths)).not.toContain('/api/v1/jobs');
});

test('an unavailable upstream is omitted and named, and included once it responds', async () => {
  const peers = createPeers({ workflow: 'http://127.0.0.1:1' });
  const gateway = await startGateway({ peers });
  expect((await merged(gateway))['x-svc-unavailable']).toEqual(['rest', 'plugins', 'workflow']);
  const restDaemon = await startTestDaemon(rest);
  peers.set({ rest: restDaemon.url });
  const document = await merged(gateway);
  expect(document['x-svc-unavailable']).toEqual(['workflow']);
  expect(Object.keys(document.paths)).toContain('/api/v1/jobs');
});

test('the API browser of the merged description works without any other server', async () => {
  const gateway = await startGateway();
  const page = await gateway.fetch('/docs-all');
  expect(page.status).toBe(200);
  const html = await page.text();
  expect(html).not.toMatch(/https?:\/\//);
  const links = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => link!);
  expect(links.length).toBeGreaterThan(2);
  for (const link of links) expect([link, (await gateway.fetch(link)).status]).toEqual([link, 200]);
  expect(await (await gateway.fetch('/docs-all/start.js')).text()).toContain('/openapi-merged.json');
});

test('the documentation for language models is served without a token', async () => {
  const gateway = await startGateway();
  for (const name of ['llms.txt', 'llms-full.txt']) {
    const answer = await gateway.fetch(`/${name}`);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
    expect(await answer.text()).toBe(await readFile(join(packageRoot, name), 'utf8'));
  }
});

test('/ redirects a browser to the API description, unless an upstream serves it', async () => {
  const gateway = await startGateway();
  const root = await gateway.fetch('/', { redirect: 'manual' });
  expect([root.status, root.headers.get('location')]).toEqual([302, '/docs-all']);
  expect((await gateway.fetch('/')).status).toBe(200);
  expect((await gateway.fetch('/', { method: 'POST' })).status).toBe(405);
  const rooted = await startGateway({ gateway: { upstreams: { rest: { prefix: '/' } } } });
  expect((await rooted.fetch('/', { redirect: 'manual' })).status).toBe(401);
});

const document = (paths: OpenApiDocument['paths'], schemas: Record<string, unknown>): OpenApiDocument => ({
  openapi: '3.1.0',
  info: { title: 't', version: '1' },
  paths,
  components: { schemas, securitySchemes: {} },
});
const operation = (operationId: string, ref: string) => ({
  get: {
    operationId,
    tags: ['t'],
    responses: {
      200: {
        description: 'x',
        content: { 'application/json': { schema: { $ref: `#/components/schemas/${ref}` } } },
      },
    },
  },
});

test('equal names of two services are kept apart for different schemas, and shared for equal ones', () => {
  const own = { isRouted: () => true, tokens: 'always' as const };
  const same = { type: 'string' };
  const result = mergeOpenApi(
    { title: 'm', version: '1' },
    [
      {
        ...own,
        name: 'a',
        document: document({ '/a': operation('get', 'Item') }, { Item: { type: 'number' }, Same: same }),
      },
      {
        ...own,
        name: 'b',
        document: document({ '/b': operation('get', 'Item') }, { Item: { type: 'boolean' }, Same: same }),
      },
    ],
    [],
  );
  expect(result.components.schemas).toEqual({
    Item: { type: 'number' },
    Same: same,
    b_Item: { type: 'boolean' },
  });
  expect(JSON.stringify(result.paths['/b'])).toContain('#/components/schemas/b_Item');
  expect(JSON.stringify(result.paths['/b'])).toContain('"b_get"');
  expect(JSON.stringify(result.paths['/a'])).toContain('#/components/schemas/Item');
});

test('when two services claim a path, the routed one describes it, whatever its parameter name', () => {
  const first = document(
    { '/x/{id}': operation('one', 'A'), '/only/first': operation('three', 'A') },
    { A: {} },
  );
  const second = document({ '/x/{name}': operation('two', 'A') }, { A: {} });
  const result = mergeOpenApi(
    { title: 'm', version: '1' },
    [
      { name: 'a', document: first, isRouted: (path) => !path.startsWith('/x'), tokens: 'always' as const },
      { name: 'b', document: second, isRouted: (path) => path.startsWith('/x'), tokens: 'always' as const },
    ],
    [],
  );
  expect(Object.keys(result.paths)).toEqual(['/only/first', '/x/{name}']);
});
