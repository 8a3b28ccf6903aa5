import { expect, test } from 'vitest';
import { z } from 'zod';
import { endpoint, listState, putState, startRun } from '../../src/contracts/index.ts';
import { openApiDocument, operationId } from '../../src/http/openapi.ts';
import { startTestDaemon } from '../support/daemon.ts';
import { openApiFaults } from '../support/openapi.ts';
import { echo, sampleDaemon } from '../support/sample-daemon.ts';

const Sample = z.object({ id: z.string(), tag: z.string().default('none') }).meta({ id: 'Sample' });

const mounted = (definition: Parameters<typeof endpoint>[0], authenticated = false) => {
  const described = endpoint(definition);
  return { method: described.method, path: described.path, endpoint: described, authenticated };
};

test('what is printed is OpenAPI 3.1 without a dangling reference', async () => {
  const document = openApiDocument('sample', '1.2.3', [
    mounted(listState, true),
    mounted(putState, true),
    mounted(startRun, true),
    mounted({
      method: 'POST',
      path: '/samples/:id/parts',
      tags: ['a', 'b'],
      body: Sample,
      reply: z.array(Sample),
    }),
    mounted({ method: 'GET', path: '/samples', tags: ['a'], reply: z.json() }),
  ]);
  expect(await openApiFaults(document)).toEqual([]);
  expect(document.info).toEqual({ title: 'svc sample', version: '1.2.3' });
  expect(document.tags).toEqual(['a', 'b', 'state', 'workflows'].map((name) => ({ name })));
});

test('the checker finds faults', async () => {
  const document = openApiDocument('sample', '1', [
    mounted({ method: 'GET', path: '/a/:b', tags: ['a'], reply: Sample }),
  ]);
  const operation = document.paths['/a/{b}']!.get as Record<string, unknown>;
  delete document.components.schemas.Sample;
  operation.parameters = [];
  document.paths['/a'] = { get: { ...operation, responses: 7 } };
  expect(await openApiFaults(document)).toEqual([
    expect.stringContaining('not OpenAPI'),
    'nothing at #/components/schemas/Sample',
    expect.stringContaining('path parameters'),
    expect.stringContaining('operationId getAByB also of'),
  ]);
});

test('named schemas are components; one whose request and answer differ has two names', () => {
  const { components, paths } = openApiDocument('sample', '1', [
    mounted({ method: 'POST', path: '/samples', tags: ['a'], body: Sample, reply: Sample }),
  ]);
  expect(Object.keys(components.schemas)).toEqual(['Error', 'Sample', 'SampleInput']);
  expect(components.schemas.Sample).toMatchObject({ required: ['id', 'tag'] });
  expect(components.schemas.SampleInput).toMatchObject({ required: ['id'] });
  const operation = paths['/samples']!.post as { requestBody: object; responses: Record<string, object> };
  expect(JSON.stringify(operation.requestBody)).toContain('#/components/schemas/SampleInput"');
  expect(JSON.stringify(operation.responses[200])).toContain('#/components/schemas/Sample"');
});

test('every operation says how it fails, and what it wants of the caller', () => {
  const { paths, components } = openApiDocument('sample', '1', [
    mounted(
      {
        method: 'GET',
        path: '/a/:id',
        tags: ['a'],
        params: z.object({ id: z.string() }),
        reply: Sample,
        errors: ['NOT_FOUND'],
      },
      true,
    ),
    mounted({ method: 'GET', path: '/b', tags: ['a'], reply: Sample }),
  ]);
  const [closed, open] = [paths['/a/{id}']!.get, paths['/b']!.get] as Array<{
    responses: Record<string, { description: string }>;
    security: unknown[];
  }>;
  expect(Object.keys(closed!.responses)).toEqual(['200', '400', '401', '404', 'default']);
  expect(closed!.security).toEqual([{ bearer: [] }]);
  expect(Object.keys(open!.responses)).toEqual(['200', 'default']);
  expect(open!.security).toEqual([]);
  expect(components.schemas.Error).toMatchObject({ required: ['error'] });
});

test('a route without tags is hidden but reachable, a hidden one is too', async () => {
  const daemon = await startTestDaemon(
    sampleDaemon(
      echo({ method: 'GET', path: '/tagged', tags: ['a'] }),
      echo({ method: 'GET', path: '/untagged' }),
      echo({ method: 'GET', path: '/empty-tags', tags: [] }),
      echo({ method: 'GET', path: '/stream', tags: ['a'], hidden: true }),
    ),
  );
  const document = (await (await daemon.fetch('/openapi.json')).json()) as { paths: Record<string, unknown> };
  expect(await openApiFaults(document)).toEqual([]);
  expect(Object.keys(document.paths).sort()).toEqual([
    '/api/v1/health',
    '/api/v1/ready',
    '/health',
    '/ready',
    '/tagged',
  ]);
  for (const path of ['/tagged', '/untagged', '/empty-tags', '/stream']) {
    expect((await daemon.fetch(path)).status, path).toBe(200);
  }
});

test('operation ids tell a parameter from a word', () => {
  expect(operationId('GET', '/api/v1/a/:b')).toBe('getApiV1AByB');
  expect(operationId('GET', '/api/v1/a/b')).toBe('getApiV1AB');
});

test('the docs page takes everything from this service', async () => {
  const daemon = await startTestDaemon(sampleDaemon());
  const page = await daemon.fetch('/docs');
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(page.headers.get('content-security-policy')).toMatch(
    /default-src 'none'.*script-src 'self'.*connect-src 'self'/,
  );
  const html = await page.text();
  const links = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, link]) => link!);
  expect(links.length).toBeGreaterThanOrEqual(4);
  for (const link of links) {
    expect(link).toMatch(/^\/docs\//);
    const asset = await daemon.fetch(link);
    expect(asset.status, link).toBe(200);
    const text = await asset.text();
    expect(text.length).toBeGreaterThan(20);
    if (link.endsWith('.css')) expect(text).not.toMatch(/url\(["']?(?:https?:)?\/\/|@import/);
  }
  const start = await (await daemon.fetch('/docs/start.js')).text();
  expect(start).toContain('url: "/openapi.json"');
  expect(start).toContain('validatorUrl: null');
  expect((await daemon.fetch('/docs/assets/package.json')).status).toBe(404);
  expect((await daemon.fetch('/docs/assets/..%2f..%2fpackage.json')).status).toBe(400);
});
