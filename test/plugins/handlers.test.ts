import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  type CallOptions,
  FIXTURES,
  requestFor,
  SANDBOXES,
  sharedBackends,
  startBackend,
} from './support.ts';

const shared = sharedBackends();

const good = (options: CallOptions = {}): CallOptions => ({ plugin: 'good', ...options });
const rest = (method: string, options: CallOptions = {}): CallOptions =>
  good({ host: 'rest', hostContext: { host: 'rest', method, path: '/x', requestId: 'r' }, ...options });

test('a handler receives its context and input; what it returns is the result of a success', async () => {
  const { backend } = await shared();
  const request = requestFor(
    'handlers.ts#context',
    good({
      tenantId: 'acme',
      user: { hostId: 'ci', namespaceId: 'acme' },
      params: { id: '7' },
      config: { colour: 'green' },
    }),
  );
  expect(await backend.run(request)).toEqual({
    exitCode: 0,
    result: {
      host: 'cli',
      requestId: 'request-1',
      traceId: 'trace-1',
      executionId: request.executionId,
      pluginId: 'good',
      pluginVersion: '1.0.0',
      tenantId: 'acme',
      user: { hostId: 'ci', namespaceId: 'acme' },
      params: { id: '7' },
      config: { colour: 'green' },
    },
  });
});

test('CommandResults are returned unchanged, any other value becomes the result', async () => {
  const { backend } = await shared();
  const run = (handler: string, options: CallOptions = {}) =>
    backend.run(requestFor(`handlers.ts#${handler}`, good(options)));
  expect(await run('command', { input: { count: '4' } })).toEqual({
    exitCode: 0,
    result: { doubled: 8 },
    meta: { by: 'command' },
  });
  expect(await run('declines')).toEqual({
    exitCode: 1,
    error: { code: 'OUT_OF_STOCK', message: 'None left', details: { sku: 'a' } },
  });
  expect(await run('greet', { input: { name: 'Ada' } })).toEqual({ exitCode: 0, result: 'Hello Ada' });
  expect(await run('nothing')).toEqual({ exitCode: 0 });
  await expect(run('malformed')).rejects.toMatchObject({
    code: 'EXECUTION_ERROR',
    message: 'The handler returned a malformed CommandResult: exitCode must be a whole number.',
  });
});

test.each<[handler: string, host: CallOptions['host'], expected: string]>([
  ['command', 'webhook', 'cli or workflow or plugin'],
  ['createOrder', 'cli', 'rest'],
  ['onPush', 'rest', 'webhook'],
  ['job', 'workflow', 'job'],
  ['validator', 'webhook', 'validator'],
])('%s under the host %s fails with HOST_MISMATCH', async (handler, host, expected) => {
  const { backend } = await shared();
  const request = requestFor(`handlers.ts#${handler}`, good({ host }));
  await expect(backend.run(request)).rejects.toMatchObject({
    code: 'HOST_MISMATCH',
    message: expect.stringContaining(`runs under the host ${expected}, but was called under ${host}`),
  });
});

test('a route knows its method, its parameters and its user; another method is refused by both names', async () => {
  const { backend } = await shared();
  const user = { hostId: 'h', namespaceId: 'default' };
  const request = requestFor('handlers.ts#createOrder', rest('POST', { params: { id: '7' }, user }));
  expect(await backend.run(request)).toEqual({ exitCode: 0, result: { id: '7', user, method: 'POST' } });
  await expect(backend.run(requestFor('handlers.ts#createOrder', rest('PUT')))).rejects.toMatchObject({
    code: 'HOST_MISMATCH',
    message: '"handlers.ts#createOrder" expects the method POST, but received PUT.',
    details: { expected: 'POST', received: 'PUT' },
  });
});

test('webhooks and validators see what the spec gives them', async () => {
  const { call } = await shared();
  const hostContext = {
    host: 'webhook',
    event: 'push',
    namespaceId: 'default',
    webhookId: 'w',
    source: '::1',
  };
  const delivery = good({ host: 'webhook', hostContext, input: { ref: 'main' } });
  expect(await call('handlers.ts#onPush', delivery)).toEqual({
    event: 'push',
    webhookId: 'w',
    input: { ref: 'main' },
  });
  const check = (secret: string) => good({ host: 'validator', input: { headers: {}, rawBody: '', secret } });
  expect(await call('handlers.ts#validator', check('right'))).toEqual({ valid: true });
  expect(await call('handlers.ts#validator', check('wrong'))).toEqual({ valid: false });
});

test.each([
  ['absent.js#x', 'there is no file absent.js in the plugin'],
  ['../attacker/attacks.js#ok', "is outside of the plugin's folder"],
  ['/etc/passwd#x', "is outside of the plugin's folder"],
  ['handlers.ts#nowhere', 'handlers.ts has no export "nowhere"'],
  ['handlers.ts#notAHandler', 'handlers.ts has no export "notAHandler" that is a function'],
])('INVALID_HANDLER for %s', async (handler, message) => {
  const { backend } = await shared();
  const root = join(FIXTURES, 'good');
  await expect(backend.run(requestFor(handler, good({ root })))).rejects.toMatchObject({
    code: 'INVALID_HANDLER',
    message: expect.stringContaining(message),
  });
});

test('a service that whoever runs the plugin does not offer says so', async () => {
  const { backend } = await shared();
  await expect(backend.run(requestFor('handlers.ts#absent', good({ input: 'key' })))).rejects.toMatchObject({
    message: 'The platform has no service "storage.read".',
  });
});

test('input that does not fit is VALIDATION_ERROR with every fault; the handler does not run', async () => {
  const { backend } = await shared();
  const request = requestFor('handlers.ts#command', good({ input: { count: 0 } }));
  await expect(backend.run(request)).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
    details: { issues: [{ path: 'count', message: expect.any(String) }] },
  });
  await expect(backend.run(requestFor('handlers.ts#badOutput', good()))).rejects.toMatchObject({
    code: 'EXECUTION_ERROR',
    details: { outputIssues: [{ path: 'total', message: expect.any(String) }] },
  });
});

describe.each(SANDBOXES)('schemas named by the manifest, under the sandbox "%s"', (sandbox) => {
  const run = async (schemas: object, input: unknown, options: CallOptions = {}) => {
    const { backend } = await shared(sandbox);
    const request = requestFor('handlers.js#echo', {
      plugin: '@acme/schemas',
      root: join(FIXTURES, 'schemas'),
      schemas,
      input,
      ...options,
    });
    return backend.run(request);
  };

  test.each(['./schemas.js#Order', '@acme/schemas#Order'])('zod: %s', async (zod) => {
    expect(await run({ input: { zod } }, { sku: 'ab', count: '3' })).toEqual({
      exitCode: 0,
      result: { sku: 'ab', count: 3 },
    });
    await expect(run({ input: { zod } }, { sku: 'a' })).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      details: { issues: [{ path: 'sku' }] },
    });
  });

  test("zod: the plugin's own package by its name, without exports", async () => {
    const options = { plugin: 'plain-package', root: join(FIXTURES, 'plain-package') };
    const schemas = { input: { zod: 'plain-package#Order' } };
    expect(await run(schemas, { sku: 'ab' }, options)).toMatchObject({ result: { sku: 'ab' } });
    await expect(run(schemas, { sku: 1 }, options)).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
  });

  test('$ref into a file of the plugin', async () => {
    const $ref = 'order.schema.json#/$defs/order';
    expect(await run({ input: { $ref } }, { sku: 'ab', count: 3 })).toMatchObject({ result: { count: 3 } });
    await expect(run({ input: { $ref } }, { sku: 'a', count: 'x' })).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      details: { issues: [{ path: 'sku' }, { path: 'count', message: 'must be integer' }] },
    });
    await expect(run({ output: { $ref } }, {})).rejects.toMatchObject({
      code: 'EXECUTION_ERROR',
      message: expect.stringMatching(/sku\W+is missing/),
      details: { outputIssues: [{ path: 'sku' }] },
    });
  });

  test('numbers in a query string are read as numbers, those in a body are not', async () => {
    const $ref = 'order.schema.json#/$defs/order';
    const query = { sku: 'ab', count: '3' };
    const { schemas, ...get } = rest('GET', { schemas: { input: { $ref } } });
    expect(await run(schemas!, query, { ...get, plugin: '@acme/schemas' })).toMatchObject({
      result: { count: 3 },
    });
    await expect(
      run(schemas!, query, { ...rest('POST'), plugin: '@acme/schemas', schemas }),
    ).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
    });
  });

  test.each([
    [{ zod: './schemas.js#Absent' }, 'is not a zod schema'],
    [{ zod: 'not-installed#Order' }, 'could not be loaded'],
    [{ zod: '../good/handlers.ts#greet' }, "is outside of the plugin's folder"],
    [{ $ref: 'absent.json#/x' }, 'there is no file absent.json'],
    [{ $ref: '../good/package.json' }, "is outside of the plugin's folder"],
    [{ $ref: 'https://example.com/schema.json' }, 'only files of the plugin may be referenced'],
  ])('%j is INVALID_HANDLER', async (input, message) => {
    await expect(run({ input }, {})).rejects.toMatchObject({
      code: 'INVALID_HANDLER',
      message: expect.stringContaining(message),
    });
  });
});

describe.each(SANDBOXES)('platform services under the sandbox "%s"', (sandbox) => {
  test('state keeps values of one plugin and tenant', async () => {
    const { call } = await shared(sandbox);
    const kept = {
      twice: [true, false],
      count: [1, 6],
      page: { items: [{ key: 'order', value: { total: 7 }, expiresAt: null }], nextCursor: null },
      got: [{ total: 7 }, null],
      deleted: true,
    };
    expect(await call('handlers.ts#keeps', good())).toEqual(kept);
    expect(await call('handlers.ts#keeps', good())).toMatchObject({ twice: [false, false], count: [7, 12] });
    expect(await call('handlers.ts#keeps', good({ tenantId: 'other' }))).toEqual(kept);
  });

  test('a service that the manifest switches off is refused by its name', async () => {
    const { backend } = await shared(sandbox);
    const permissions = { platform: { cache: false } };
    await expect(backend.run(requestFor('handlers.ts#caches', good({ permissions })))).rejects.toMatchObject({
      code: 'PERMISSION_DENIED',
      details: { permission: 'permissions.platform.cache' },
    });
    await expect(backend.run(requestFor('handlers.ts#setsNothing', good()))).rejects.toMatchObject({
      code: 'EXECUTION_ERROR',
      message: expect.stringContaining('the value must be JSON, not undefined'),
    });
  });

  test('log lines, console and stdout carry the plugin; the first two also the request', async () => {
    const { call, logs, backend } = await startBackend({ sandbox });
    await call('handlers.ts#logs', good({ tenantId: 'acme', requestId: 'r-7' }));
    await backend.close();
    const request = { pluginId: 'good', logsSource: 'plugin', tenantId: 'acme', requestId: 'r-7' };
    expect(logs.lines).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ ...request, level: 'info', message: 'from ctx.log', meta: { order: 7 } }),
        expect.objectContaining({ ...request, level: 'warn', message: 'from console' }),
        expect.objectContaining({ pluginId: 'good', layer: 'stdout', message: 'from stdout' }),
      ]),
    );
  });

  test("a thrown error's stack goes to the log, its message and place to the caller", async () => {
    const { backend, logs } = await startBackend({ sandbox });
    const error = await backend.run(requestFor('attacks.js#throws')).catch((thrown) => thrown);
    expect(error.message).not.toContain('attacks.js:');
    expect(error.details.at).toMatch(/^attacks\.js:\d+(?::\d+)?$/);
    expect(JSON.stringify(error.details)).not.toMatch(/\bat .*attacks\.js/);
    expect(logs.lines).toContainEqual(
      expect.objectContaining({
        level: 'error',
        requestId: 'request-1',
        meta: expect.objectContaining({ stack: expect.stringContaining('attacks.js:') }),
      }),
    );
  });
});
