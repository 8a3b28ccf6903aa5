import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PlatformError } from '../../src/kit/errors/errors.ts';
import { createFetchService, type FetchServiceOptions } from '../../src/plugins/services/fetch.ts';
import { checkedLookup, refusePrivateAddress } from '../../src/plugins/services/guarded-dispatcher.ts';
import { requireHost } from '../../src/plugins/services/network-permission.ts';
import type { Resolve } from '../../src/plugins/services/resolve.ts';
import { eventually, failureOf, requestFor, SANDBOXES, startBackend } from './support.ts';

async function serve(listener: RequestListener): Promise<{ port: number; url: string; seen: string[] }> {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    listener(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}`, seen };
}

interface Sent {
  method?: string;
  headers?: Array<[string, string]>;
  body?: string | null;
  redirect?: string;
}

function fetcher(network: string[], options: FetchServiceOptions = {}) {
  const service = createFetchService(options);
  const context = {
    request: requestFor('h.js#h', { permissions: { network } }),
    signal: new AbortController().signal,
  };
  return (url: string, { method = 'GET', headers = [], body = null, redirect = 'follow' }: Sent = {}) =>
    service.request(context, [{ url, method, headers, body, redirect }]) as Promise<{
      status: number;
      url: string;
      body: string;
      redirected: boolean;
      headers: Array<[string, string]>;
    }>;
}

const textOf = ({ body }: { body: string }) => Buffer.from(body, 'base64').toString();
/** A name server of our own: names to addresses, a list of answers one after the other. */
const names =
  (answers: Record<string, string[][]>): Resolve =>
  (hostname, _, callback) => {
    const list = answers[hostname] ?? [];
    const addresses = list.length > 1 ? list.shift()! : (list[0] ?? []);
    const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    callback(found.length === 0 ? Object.assign(new Error('not found'), { code: 'ENOTFOUND' }) : null, found);
  };

describe('permissions.network', () => {
  test.each([
    ['https://api.example.com/', ['api.example.com'], false],
    ['https://API.example.com./', ['api.example.com'], false],
    ['https://api.example.com:8443/', ['api.example.com'], false],
    ['https://api.example.com:8443/', ['api.example.com:8443'], false],
    ['http://127.0.0.1:3000/', ['127.0.0.1:3000'], true],
    ['http://2130706433/', ['127.0.0.1'], true],
    ['http://[::1]:3000/', ['[::1]:3000'], true],
    ['http://[::1]/', ['::1'], true],
    ['https://bücher.example/', ['bücher.example'], false],
    ['http://db.inside.test:5432/', ['db.inside.test'], true],
    ['https://a.b.example.com/', ['*.example.com'], false],
    ['https://anything.test/', ['*'], false],
    ['https://a.example.com/', ['*.example.com', 'a.example.com'], false],
    ['http://db.inside.test/', ['*.inside.test'], false],
  ])('%s is allowed by %j', (url, network, mayBePrivate) => {
    expect(requireHost(new URL(url), network, ['db.inside.test'])).toEqual({ mayBePrivate });
  });

  test.each([
    ['https://example.com/', ['*.example.com']],
    ['https://evilexample.com/', ['*.example.com', 'example.com']],
    ['https://example.com.evil.test/', ['example.com', '*.example.com']],
    ['https://api.example.com/', ['api.example.com:8443']],
    ['https://api.example.com:444/', ['api.example.com:443']],
    ['https://api.example.com/', ['']],
    ['https://api.example.com/', []],
  ])('%s is not allowed by %j', (url, network) => {
    expect(() => requireHost(new URL(url), network)).toThrow(/permissions\.network/);
  });
});

test('a host that the manifest names itself is called, also on this machine', async () => {
  const { url, port } = await serve((request, response) => {
    response.setHeader('x-seen', String(request.headers['x-sent']));
    request.pipe(response);
  });
  const call = fetcher([`127.0.0.1:${port}`]);
  const reply = await call(`${url}/a?b=1`, {
    method: 'POST',
    headers: [
      ['x-sent', 'yes'],
      ['host', 'other.test'],
      ['connection', 'upgrade'],
    ],
    body: Buffer.from('hello').toString('base64'),
  });
  expect([reply.status, reply.url, textOf(reply), Object.fromEntries(reply.headers)['x-seen']]).toEqual([
    200,
    `${url}/a?b=1`,
    'hello',
    'yes',
  ]);
});

test.each([['*'], ['*.0.0.1'], ['other.test']])(
  'this machine is not reached by the permission %s',
  async (entry) => {
    const { url, seen } = await serve((_, response) => response.end());
    const failure = await failureOf(fetcher([entry])(url));
    expect([failure.code, failure.details.permission]).toEqual(['PERMISSION_DENIED', 'permissions.network']);
    expect(seen).toEqual([]);
  },
);

test.each(['http://127.1/', 'http://0x7f000001/', 'http://0/', 'http://[::ffff:127.0.0.1]/'])(
  '%s is refused in every spelling',
  async (url) => {
    const failure = await failureOf(fetcher(['*'])(url));
    expect(failure).toMatchObject({
      code: 'PERMISSION_DENIED',
      message: expect.stringMatching(/address\. List "/),
    });
  },
);

test.each([
  'http://169.254.169.254/',
  'http://[fe80::1]/',
  'http://[::ffff:169.254.169.254]/',
  'http://168.63.129.16/',
  'http://100.100.100.200/',
  'http://[fd00:ec2::254]/',
])('%s is refused whatever is listed', async (url) => {
  const { hostname } = new URL(url);
  for (const network of [['*'], [hostname]]) {
    const failure = await failureOf(fetcher(network, { privateHosts: [hostname] })(url));
    expect([failure.code, failure.message]).toEqual([
      'PERMISSION_DENIED',
      expect.stringMatching(/No permission allows/),
    ]);
  }
});

test('a name that leads to a link-local or metadata address is refused, also one that the operator lists', async () => {
  const resolve = names({ 'meta.test': [['169.254.169.254']], 'azure.test': [['168.63.129.16']] });
  for (const host of ['meta.test', 'azure.test']) {
    const failure = await failureOf(fetcher([host], { resolve, privateHosts: [host] })(`http://${host}/`));
    expect([failure.code, failure.message]).toEqual([
      'PERMISSION_DENIED',
      expect.stringMatching(/No permission allows/),
    ]);
  }
});

test('a name that leads to this machine is refused unless the operator lists it', async () => {
  const { port, seen } = await serve((_, response) => response.end('inside'));
  const resolve = names({ 'inside.test': [['127.0.0.1']], 'mixed.test': [['93.184.216.34', '10.0.0.1']] });
  for (const url of [`http://inside.test:${port}/`, `http://mixed.test:${port}/`]) {
    for (const network of [['*.test'], [new URL(url).hostname], ['*']])
      expect(await failureOf(fetcher(network, { resolve })(url))).toMatchObject({
        code: 'PERMISSION_DENIED',
        message: expect.stringMatching(/resolves to (?:127\.0\.0\.1|10\.0\.0\.1).*execution\.privateHosts/),
      });
  }
  expect(seen).toEqual([]);
  const listed = { resolve, privateHosts: ['inside.test'] };
  expect(textOf(await fetcher(['inside.test'], listed)(`http://inside.test:${port}/`))).toBe('inside');
});

test('each connection checks the very addresses it will use, so a name that answers differently gains nothing', async () => {
  const resolve = names({ 'rebind.test': [['93.184.216.34', '2606:2800:220::1'], ['127.0.0.1']] });
  const lookup = checkedLookup(resolve, refusePrivateAddress);
  const connect = () =>
    new Promise((found) =>
      lookup('rebind.test', { all: true }, (error, addresses) => found(error ?? addresses)),
    );
  expect(await connect()).toEqual([
    { address: '93.184.216.34', family: 4 },
    { address: '2606:2800:220::1', family: 6 },
  ]);
  expect(await connect()).toMatchObject({ code: 'PERMISSION_DENIED', details: { address: '127.0.0.1' } });
});

test('a connection opened for a named host is not lent to a pattern', async () => {
  const { port, seen } = await serve((_, response) => response.end());
  const resolve = names({ 'inside.test': [['127.0.0.1']] });
  const service = createFetchService({ resolve, privateHosts: ['inside.test'] });
  const call = (network: string[]) =>
    service.request(
      { request: requestFor('h.js#h', { permissions: { network } }), signal: new AbortController().signal },
      [{ url: `http://inside.test:${port}/`, method: 'GET', headers: [], body: null, redirect: 'follow' }],
    );
  await call(['inside.test']);
  expect((await failureOf(call(['*.test']))).code).toBe('PERMISSION_DENIED');
  expect(seen).toEqual(['GET /']);
});

describe('redirects', () => {
  const redirectTo = (target: () => string, status = 302): RequestListener => {
    return (request, response) => {
      if (request.url === '/end') {
        response.setHeader('x-headers', JSON.stringify(request.headers));
        response.end(request.method);
      } else response.writeHead(status, { location: target() }).end('a body nobody reads');
    };
  };

  test('are followed, and every hop is checked', async () => {
    const other = await serve((_, response) => response.end('other'));
    const { url, port } = await serve(redirectTo(() => '/end'));
    const reply = await fetcher([`127.0.0.1:${port}`])(url);
    expect([reply.url, reply.redirected, textOf(reply)]).toEqual([`${url}/end`, true, 'GET']);

    const away = await serve(redirectTo(() => other.url));
    const failure = await failureOf(fetcher([`127.0.0.1:${away.port}`])(away.url));
    expect([failure.code, failure.details.port]).toEqual(['PERMISSION_DENIED', other.port]);
    expect(other.seen).toEqual([]);
  });

  test('to another scheme, or without end, fail', async () => {
    const file = await serve(redirectTo(() => 'file:///etc/passwd'));
    expect((await failureOf(fetcher(['127.0.0.1'])(file.url))).message).toContain('a redirect led to file:');
    const loop = await serve(redirectTo(() => '/again'));
    expect((await failureOf(fetcher(['127.0.0.1'])(loop.url))).message).toContain(
      'redirected more than 10 times',
    );
    expect(loop.seen.length).toBe(11);
  });

  test('manual and error are as in the standard', async () => {
    const { url } = await serve(redirectTo(() => '/end'));
    expect((await fetcher(['127.0.0.1'])(url, { redirect: 'manual' })).status).toBe(302);
    expect((await failureOf(fetcher(['127.0.0.1'])(url, { redirect: 'error' }))).code).toBe(
      'UPSTREAM_UNAVAILABLE',
    );
  });

  test.each([
    [301, 'GET'],
    [302, 'GET'],
    [303, 'GET'],
    [307, 'POST'],
    [308, 'POST'],
  ])('a POST that meets %d goes on as %s', async (status, method) => {
    const { url } = await serve(redirectTo(() => '/end', status));
    const body = Buffer.from('x').toString('base64');
    expect(textOf(await fetcher(['127.0.0.1'])(url, { method: 'POST', body }))).toBe(method);
  });

  test('credentials do not follow to another origin', async () => {
    const end = await serve(redirectTo(() => '/never'));
    const { url } = await serve(redirectTo(() => `${end.url}/end`));
    const headers: Array<[string, string]> = [
      ['authorization', 'Bearer x'],
      ['cookie', 'a=b'],
      ['x-mine', 'stays'],
    ];
    const reply = await fetcher(['127.0.0.1'])(url, { headers });
    const received = JSON.parse(Object.fromEntries(reply.headers)['x-headers']!);
    expect([received.authorization, received.cookie, received['x-mine']]).toEqual([
      undefined,
      undefined,
      'stays',
    ]);
  });
});

test('a response beyond the limit is refused, counted after it was unpacked', async () => {
  const bomb = gzipSync(Buffer.alloc(9 * 1024 * 1024));
  const { url } = await serve((request, response) => {
    if (request.url === '/bomb') response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb);
    else response.end(Buffer.alloc(9 * 1024 * 1024));
  });
  const call = fetcher(['127.0.0.1']);
  for (const path of ['/plain', '/bomb']) {
    expect(await failureOf(call(url + path))).toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      details: { maxBytes: 8 * 1024 * 1024 },
    });
  }
});

test('a server that does not answer is told apart from one that is unreachable', async () => {
  const { url } = await serve(() => {});
  expect((await failureOf(fetcher(['127.0.0.1'], { timeoutMs: 100 })(url))).code).toBe('UPSTREAM_TIMEOUT');
  expect((await failureOf(fetcher(['127.0.0.1'])('http://127.0.0.1:1/'))).code).toBe('UPSTREAM_UNAVAILABLE');
  const resolve = names({});
  expect((await failureOf(fetcher(['*'], { resolve })('http://absent.test/'))).message).toContain(
    'ENOTFOUND',
  );
});

test('ten calls of a plugin are made at once; who waits is served in turn, or leaves with its handler', async () => {
  const answers: Array<() => void> = [];
  const { url, seen } = await serve((_, response) => void answers.push(() => response.end()));
  const service = createFetchService();
  const own = requestFor('h.js#h', { permissions: { network: ['127.0.0.1'] } });
  const call = (path: string, { signal } = new AbortController(), request = own) =>
    service.request({ request, signal }, [{ url: `${url}/${path}`, method: 'GET', headers: [], body: null }]);
  const first = Array.from({ length: 10 }, (_, path) => call(`${path}`));
  await eventually(() => answers.length === 10);
  const leaving = new AbortController();
  const left = failureOf(call('10', leaving));
  const last = call('11');
  // Places are a plugin's own: what another sends later arrives, what waits does not.
  const other = call('other', undefined, { ...own, plugin: { ...own.plugin, id: 'other' } });
  await eventually(() => seen.includes('GET /other'));
  expect(seen).toHaveLength(11);
  leaving.abort(new PlatformError('EXECUTION_ERROR', 'over'));
  expect((await left).message).toBe('over');
  answers.shift()!();
  await eventually(() => seen.length === 12);
  expect(seen.at(-1)).toBe('GET /11');
  for (const answer of answers) answer();
  expect(await Promise.all([...first, last, other])).toHaveLength(12);
});

test('a tenant whose calls are slow has all places while it is alone, and keeps room for others from then on', async () => {
  const answers: Array<() => void> = [];
  const { url, seen } = await serve((_, response) => void answers.push(() => response.end()));
  const service = createFetchService();
  const call = (tenantId: string) => {
    const request = requestFor('h.js#h', { tenantId, permissions: { network: ['127.0.0.1'] } });
    const sent = { url: `${url}/${tenantId}`, method: 'GET', headers: [], body: null };
    return service.request({ request, signal: new AbortController().signal }, [sent]);
  };
  const alone = Array<string>(12).fill('flood').map(call);
  await eventually(() => answers.length === 10);
  const timer = setInterval(() => answers.shift()?.(), 1);
  await Promise.all(alone);
  clearInterval(timer);
  const calls = ['guest', ...Array<string>(12).fill('flood'), 'other'].map(call);
  await eventually(() => answers.length === 9);
  expect(seen.filter((line) => line === 'GET /other')).toHaveLength(1);
  const again = setInterval(() => answers.shift()?.(), 1);
  expect(await Promise.all(calls)).toHaveLength(14);
  clearInterval(again);
});

test.each<[what: string, sent: unknown]>([
  ['no object', 'x'],
  ['a relative URL', { url: '/x', method: 'GET', headers: [], body: null }],
  ['another scheme', { url: 'ftp://127.0.0.1/', method: 'GET', headers: [], body: null }],
  ['credentials in the URL', { url: 'http://a:b@127.0.0.1/', method: 'GET', headers: [], body: null }],
  ['CONNECT', { url: 'http://127.0.0.1/', method: 'CONNECT', headers: [], body: null }],
  ['a broken header', { url: 'http://127.0.0.1/', method: 'GET', headers: ['x'], body: null }],
  ['a body that is no text', { url: 'http://127.0.0.1/', method: 'POST', headers: [], body: 7 }],
])('%s is VALIDATION_ERROR', async (_, sent) => {
  const context = { request: requestFor('h.js#h'), signal: new AbortController().signal };
  expect((await failureOf(createFetchService().request(context, [sent]))).code).toBe('VALIDATION_ERROR');
});

describe.each(SANDBOXES)('ctx.fetch under the sandbox "%s"', (sandbox) => {
  test('gives back a real Response; refusals name the permission', async () => {
    const { url, port } = await serve((request, response) => {
      response.setHeader('x-kind', 'test');
      if (request.url === '/empty') response.writeHead(204).end();
      else request.pipe(response);
    });
    const { call, backend } = await startBackend({ sandbox });
    const permissions = { network: [`127.0.0.1:${port}`] };
    const input = { url: `${url}/echo`, init: { method: 'PUT', body: 'grüezi' } };
    expect(await call('handlers.ts#calls', { plugin: 'good', permissions, input })).toEqual({
      isResponse: true,
      status: 200,
      url: `${url}/echo`,
      redirected: false,
      headers: expect.objectContaining({ 'x-kind': 'test' }),
      text: 'grüezi',
    });
    const empty = { url: `${url}/empty` };
    expect(await call('handlers.ts#calls', { plugin: 'good', permissions, input: empty })).toMatchObject({
      status: 204,
      text: '',
    });
    const refused = requestFor('handlers.ts#calls', { plugin: 'good', input: { url } });
    await expect(backend.run(refused)).rejects.toMatchObject({
      code: 'PERMISSION_DENIED',
      details: { permission: 'permissions.network', host: '127.0.0.1', port },
    });
  });
});
