import { request as httpRequest } from 'node:http';
import { describe, expect, test } from 'vitest';
import { asCaller, send, startRest, type TestRest, untilLoad } from './support.ts';

const SHOP = '/api/v1/plugins/shop';

/** Waits until something is so; the test's own time limit ends a wait for what never is. */
async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10));
}

const lines = (daemon: TestRest, part: string) =>
  daemon.logs.lines.filter(({ message }) => String(message).includes(part));

test('the input is the JSON body of POST, PUT and PATCH, and the query of GET and DELETE; path parameters come apart', async () => {
  const daemon = await startRest();
  const order = { sku: 'abc', quantity: 2 };
  const posted = await send(daemon, 'POST', `${SHOP}/orders?quantity=9`, { body: order });
  expect(posted.body).toMatchObject({
    input: order,
    params: {},
    host: { host: 'rest', method: 'POST', path: `${SHOP}/orders` },
  });
  for (const method of ['PUT', 'PATCH']) {
    const { status, body } = await send(daemon, method, `${SHOP}/orders/a%2Fb?x=1`, { body: { x: [1] } });
    expect([status, body]).toEqual([
      200,
      expect.objectContaining({ input: { x: [1] }, params: { id: 'a/b' } }),
    ]);
  }
  const deleted = await send(daemon, 'DELETE', `${SHOP}/orders/7?force=yes`);
  expect(deleted.body).toMatchObject({ input: { force: 'yes' }, params: { id: '7' } });
  const listed = await send(daemon, 'GET', `${SHOP}/orders?limit=5&tag=a&tag=b`);
  expect(listed.body).toMatchObject({ input: { limit: 5, tag: ['a', 'b'] }, params: {} });
  const nested = await send(daemon, 'GET', `${SHOP}/orders/1/lines/2`);
  expect(nested.body).toMatchObject({ input: {}, params: { id: '1', line: '2' } });
  const empty = await send(daemon, 'PUT', `${SHOP}/orders/1`);
  expect(empty.body).toMatchObject({ input: 'nothing' });
});

test('a route of the path "/" is at the base path, with and without the slash', async () => {
  const daemon = await startRest();
  for (const path of [SHOP, `${SHOP}/`]) expect((await send(daemon, 'GET', path)).status).toBe(200);
  const { body } = await send(daemon, 'GET', '/api/v1/routes');
  expect((body as { items: Array<{ path: string }> }).items.map(({ path }) => path)).not.toContain(
    `${SHOP}/`,
  );
});

test('an input that fails its schema is 400 with every fault, and the handler does not run', async () => {
  const daemon = await startRest();
  const { status, body } = await send(daemon, 'POST', `${SHOP}/orders`, {
    body: { sku: 'a', quantity: 0, x: 1 },
  });
  expect(status).toBe(400);
  expect(body).toMatchObject({ error: { code: 'VALIDATION_ERROR', details: { issues: expect.any(Array) } } });
  const { issues } = (body as { error: { details: { issues: Array<{ path: string }> } } }).error.details;
  expect(issues.map(({ path }) => path).sort()).toEqual(['quantity', 'sku', 'x']);
  expect((await send(daemon, 'GET', `${SHOP}/orders?limit=1000`)).status).toBe(400);
  expect((await send(daemon, 'GET', `${SHOP}/zod?limit=1000`)).status).toBe(400);
  expect((await send(daemon, 'GET', `${SHOP}/zod?limit=7`)).body).toMatchObject({ input: { limit: 7 } });
  expect((await send(daemon, 'POST', `${SHOP}/orders`)).status).toBe(400);
});

test.each([
  ['text', '"just text"'],
  ['nothing', 'null'],
  ['list', '[1,2]'],
])('exit code 0 is 200 with the result as JSON: %s', async (kind, text) => {
  const daemon = await startRest();
  const response = await daemon.fetch(`${SHOP}/answers/${kind}`, { method: 'POST' });
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'application/json; charset=utf-8',
  ]);
  expect(await response.text()).toBe(text);
});

test('a declared code answers with its status, code, message and details', async () => {
  const daemon = await startRest();
  const { status, body } = await send(daemon, 'POST', `${SHOP}/answers/declared`);
  expect(status).toBe(422);
  expect(body).toEqual({
    error: { code: 'OUT_OF_STOCK', message: 'No more of these.', details: { sku: 'abc' } },
  });
  expect((await send(daemon, 'POST', `${SHOP}/answers/declared-503`)).status).toBe(503);
  expect(lines(daemon, 'does not declare')).toEqual([]);
});

test('an undeclared code is 500 with its own body, and a warning names the plugin', async () => {
  const daemon = await startRest();
  const { status, body } = await send(daemon, 'POST', `${SHOP}/answers/undeclared`);
  expect(status).toBe(500);
  expect(body).toEqual({ error: { code: 'SURPRISE', message: 'Nobody expects this.', details: {} } });
  expect(lines(daemon, 'does not declare')).toEqual([
    expect.objectContaining({
      level: 'warn',
      pluginId: '@acme/shop',
      message: expect.stringContaining('SURPRISE'),
    }),
  ]);
  const bare = await send(daemon, 'POST', `${SHOP}/answers/without-code`);
  expect(bare).toMatchObject({ status: 500, body: { error: { code: 'EXECUTION_ERROR', details: {} } } });
});

test.each(['throw', 'throw-platform', 'exit', 'throw-later', 'reject-unseen'])(
  'other handler failures are an opaque 500: %s',
  async (kind) => {
    const daemon = await startRest();
    const { status, body } = await send(daemon, 'POST', `${SHOP}/answers/${kind}`);
    expect(status).toBe(500);
    expect(body).toEqual({
      error: {
        code: 'EXECUTION_ERROR',
        message: 'The handler of this route failed; the log has the details under this request id.',
        details: {},
      },
    });
    const next = await send(daemon, 'POST', `${SHOP}/answers/text`);
    expect(next.status).toBe(200);
  },
);

test.each(['throw', 'throw-later', 'reject-unseen'])(
  'the log has the reason of %s, by request id',
  async (kind) => {
    const daemon = await startRest();
    await send(daemon, 'POST', `${SHOP}/answers/${kind}`, { headers: { 'x-request-id': 'req-1' } });
    const logged = daemon.logs.lines.filter((line) =>
      JSON.stringify(line).includes('the secret recipe is 42'),
    );
    expect(logged).toContainEqual(expect.objectContaining({ level: 'error', requestId: 'req-1' }));
  },
);

describe('timeouts', () => {
  test.each([
    ['of the route', '/hang', 1500],
    ['of the plugin', '/hang-by-default', 20_000],
  ])('a handler that outlives the timeout %s is 504', async (_, path, timeoutMs) => {
    const daemon = await startRest();
    await send(daemon, 'POST', `${SHOP}/answers/text`);
    const pending = send(daemon, 'POST', SHOP + path);
    await untilLoad(daemon, '@acme/shop', 'running');
    daemon.clock.advance(timeoutMs - 1);
    expect(await Promise.race([pending, settle()])).toBe('pending');
    daemon.clock.advance(1);
    expect(await pending).toMatchObject({
      status: 504,
      body: { error: { code: 'EXECUTION_TIMEOUT', details: { timeoutMs } } },
    });
  });

  const settle = () => new Promise((resolve) => setTimeout(() => resolve('pending'), 100));
});

test('a caller that disconnects aborts the handler', async () => {
  const daemon = await startRest();
  await send(daemon, 'POST', `${SHOP}/answers/text`);
  const call = httpRequest(`${daemon.url}${SHOP}/hang`, { method: 'POST' });
  call.on('error', () => {});
  call.end();
  await until(() => lines(daemon, 'hang has begun').length > 0);
  expect(lines(daemon, 'hang was aborted')).toEqual([]);
  call.destroy();
  await until(() => lines(daemon, 'hang was aborted').length > 0);
  await until(() => lines(daemon, `POST ${SHOP}/hang 499`).length > 0);
});

test('a handler for another host or method fails with the expected one', async () => {
  const daemon = await startRest();
  const kind = await send(daemon, 'GET', `${SHOP}/wrong-kind`);
  expect(kind).toMatchObject({
    status: 400,
    body: { error: { code: 'HOST_MISMATCH', message: expect.stringMatching(/webhook.*rest/) } },
  });
  const method = await send(daemon, 'GET', `${SHOP}/wrong-method`);
  expect(method).toMatchObject({
    status: 400,
    body: { error: { code: 'HOST_MISMATCH', message: expect.stringMatching(/POST.*GET/) } },
  });
});

test('a result that breaks its output schema is an opaque 500 and a diagnostic', async () => {
  const daemon = await startRest();
  const { status, body } = await send(daemon, 'GET', `${SHOP}/bad-output`);
  expect([status, body]).toEqual([
    500,
    { error: expect.objectContaining({ code: 'EXECUTION_ERROR', details: {} }) },
  ]);
  expect(daemon.logs.lines).toContainEqual(
    expect.objectContaining({
      event: 'plugin.output_invalid',
      domain: 'plugins',
      outcome: 'failed',
      pluginId: '@acme/shop',
    }),
  );
});

test("a route's own permissions replace the plugin's", async () => {
  const daemon = await startRest();
  const denied = await send(daemon, 'GET', `${SHOP}/state-denied`);
  expect(denied).toMatchObject({ status: 403, body: { error: { code: 'PERMISSION_DENIED' } } });
});

describe('security', () => {
  let daemon: TestRest;
  const anonymous = {};
  const person = asCaller('ci');
  const container = asCaller('container:exec_1');
  const status = async (path: string, headers: Record<string, string>) =>
    (await send(daemon, 'GET', SHOP + path, { headers })).status;

  test.each([
    ['/open', 200, 200, 200],
    ['/for-tokens', 401, 200, 200],
    ['/for-users', 401, 200, 403],
    ['/for-oauth', 401, 403, 403],
    ['/for-both', 401, 200, 200],
    ['/orders', 200, 200, 200],
  ])('%s: anonymous %i, a client %i, a container %i', async (path, nobody, client, fromContainer) => {
    daemon = await startRest();
    expect([
      await status(path, anonymous),
      await status(path, person),
      await status(path, container),
    ]).toEqual([nobody, client, fromContainer]);
  });

  test('the handler sees the user and the tenant; an anonymous user is null', async () => {
    daemon = await startRest();
    const known = await send(daemon, 'GET', `${SHOP}/for-users`, { headers: asCaller('ci', 'acme') });
    expect(known.body).toMatchObject({ user: { hostId: 'ci', namespaceId: 'acme' }, tenantId: 'acme' });
    const unknown = await send(daemon, 'GET', `${SHOP}/open`);
    expect(unknown.body).toMatchObject({ user: null, tenantId: 'default' });
  });

  test('identity headers are ignored without the service key', async () => {
    daemon = await startRest();
    expect(await status('/for-users', { 'x-svc-host-id': 'ci' })).toBe(401);
    expect(await status('/for-users', { 'x-svc-host-id': 'ci', 'x-svc-service-key': 'guess' })).toBe(401);
  });

  test('it is checked before the body is read', async () => {
    daemon = await startRest();
    const refused = await daemon.fetch(`${SHOP}/for-users`, { method: 'GET' });
    expect(refused.headers.get('www-authenticate')).toBe('Bearer');
    daemon = await startRest({ config: { auth: { mode: 'required' } } });
    const bad = await daemon.fetch(`${SHOP}/orders`, {
      method: 'POST',
      body: 'not json',
      headers: { 'content-type': 'application/json' },
    });
    expect(bad.status).toBe(401);
  });
});

describe('paths', () => {
  test('the alias by plugin id is the same route, however the id is escaped', async () => {
    const daemon = await startRest();
    for (const id of ['%40acme%2Fshop', '@acme%2fshop', '%40acme%2fshop']) {
      const { status, body } = await send(daemon, 'GET', `/api/v1/plugins/${id}/orders/1/lines/2`);
      expect([status, body], id).toEqual([200, expect.objectContaining({ params: { id: '1', line: '2' } })]);
    }
    expect((await send(daemon, 'GET', SHOP)).status).toBe(200);
    expect((await send(daemon, 'GET', '/api/v1/plugins/%40acme%2Fshop')).status).toBe(200);
  });

  test.each([
    '/v1/plugins/shop/orders',
    '/api/v1/plugins/shop/nothing',
    '/api/v1/plugins/shop/orders/',
    '/api/v1/plugins/%40acme%2Fshop/nothing',
    '/api/v1/plugins/',
  ])('%s is 404', async (path) => {
    const daemon = await startRest();
    expect(await send(daemon, 'GET', path)).toMatchObject({
      status: 404,
      body: { error: { code: 'NOT_FOUND', details: {} } },
    });
  });

  test.each([
    '/api/v1/plugins/unknown',
    '/api/v1/plugins/unknown/x',
    '/api/v1/plugins/@acme/shop/orders',
    '/api/v1/plugins/shopping/orders',
  ])('%s is of no loaded plugin: PLUGIN_NOT_FOUND', async (path) => {
    const daemon = await startRest();
    for (const method of ['GET', 'POST']) {
      expect(await send(daemon, method, path)).toMatchObject({
        status: 404,
        body: { error: { code: 'PLUGIN_NOT_FOUND', details: {} } },
      });
    }
  });

  test('a method without a route is 405 with the allowed methods', async () => {
    const daemon = await startRest();
    const { status, headers, body } = await send(daemon, 'DELETE', `${SHOP}/orders`);
    expect([status, headers.get('allow')]).toEqual([405, 'GET, POST']);
    expect(body).toMatchObject({
      error: { code: 'METHOD_NOT_ALLOWED', details: { allowed: ['GET', 'POST'] } },
    });
  });

  test('HEAD is GET without the body', async () => {
    const daemon = await startRest();
    const response = await daemon.fetch(`${SHOP}/open`, { method: 'HEAD' });
    expect(response.status).toBe(200);
    expect(Number(response.headers.get('content-length'))).toBeGreaterThan(10);
    expect(await response.text()).toBe('');
  });

  test('a plugin cannot override routes of another; its routes stay reachable under its own id', async () => {
    const daemon = await startRest();
    expect((await send(daemon, 'GET', `${SHOP}/orders/stolen`)).status).toBe(405);
    expect((await send(daemon, 'GET', '/api/v1/plugins/squatter/stolen')).body).toEqual({ stolen: true });
    const refused = daemon.logs.lines.filter(({ event }) => event === 'plugin.route_refused');
    expect(refused).toEqual([
      expect.objectContaining({ reasonCode: 'PLUGIN_CONFLICT', pluginId: 'squatter' }),
    ]);
  });

  test('metrics and log know a plugin route by its pattern', async () => {
    const daemon = await startRest();
    await send(daemon, 'GET', `${SHOP}/orders/secret-7/lines/2`);
    await send(daemon, 'POST', `${SHOP}/answers/declared`);
    const text = await (await daemon.fetch('/api/v1/metrics')).text();
    expect(text).toContain(
      `svc_http_requests_total{service="rest",method="GET",route="${SHOP}/orders/:id/lines/:line",status="200"} 1`,
    );
    expect(text).not.toContain('secret-7');
    expect(text).toContain(
      'svc_rest_domain_operation_total{service="rest",domain="plugins",operation="@acme/shop GET /orders/:id/lines/:line",outcome="succeeded"} 1',
    );
    expect(text).toContain('operation="@acme/shop POST /answers/:kind",outcome="failed"} 1');
    expect(text).toContain('# TYPE svc_rest_domain_operation_duration_ms histogram');
  });
});

test('a broken plugin is reported and left out, the others run', async () => {
  const daemon = await startRest();
  expect(daemon.logs.lines).toContainEqual(
    expect.objectContaining({
      event: 'plugin.broken',
      reasonCode: 'INVALID_MANIFEST',
      pluginId: 'broken',
      outcome: 'degraded',
    }),
  );
  expect((await send(daemon, 'GET', `${SHOP}/open`)).status).toBe(200);
});

test.each([
  ['container', 500, 'SANDBOX_ERROR', null],
  ['host', 503, 'HOST_UNAVAILABLE', '5'],
])('a plugin configured for a %s runs on no other backend', async (backend, status, code, retryAfter) => {
  const daemon = await startRest({ config: { execution: { plugins: { '@acme/shop': { backend } } } } });
  const { body, ...answer } = await send(daemon, 'GET', `${SHOP}/open`);
  expect([answer.status, answer.headers.get('retry-after'), body]).toEqual([
    status,
    retryAfter,
    {
      error: expect.objectContaining({
        code,
        message: expect.stringContaining('execution.plugins["@acme/shop"].backend'),
      }),
    },
  ]);
  expect((await send(daemon, 'GET', '/api/v1/plugins/squatter/stolen')).status).toBe(200);
});
