import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { lightFetch } from '../../src/cli/light-fetch.ts';
import { entryFile } from '../../src/kit/paths.ts';
import { tempDir } from '../support/daemon.ts';

type Answer = (request: IncomingMessage) => {
  status: number;
  headers?: Record<string, string>;
  body?: string;
};

async function startServer(answer: Answer, host = '127.0.0.1'): Promise<{ port: number; server: Server }> {
  const server = createServer(async (request, response) => {
    for await (const _ of request);
    const { status, headers = {}, body = '' } = answer(request);
    response.writeHead(status, headers).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as { port: number }).port, server };
}

const send = (url: string, signal = AbortSignal.timeout(5000)) =>
  lightFetch(url, { method: 'GET', headers: { 'x-sent': '1' }, signal });

test('a request goes out with its headers, and the answer comes with status, headers and text', async () => {
  const { port } = await startServer(({ headers }) => ({
    status: headers['x-sent'] === '1' ? 429 : 500,
    headers: { 'retry-after': '7' },
    body: 'grüße',
  }));
  const reply = await send(`http://127.0.0.1:${port}/a?b=c`);
  expect([reply.ok, reply.status, reply.headers.get('Retry-After'), reply.headers.get('x-none')]).toEqual([
    false,
    429,
    '7',
    null,
  ]);
  expect(await reply.text()).toBe('grüße');
});

test('a redirect is an answer like any other: the token goes nowhere else', async () => {
  let asked = 0;
  const { port } = await startServer(() => {
    asked++;
    return { status: 302, headers: { location: '/elsewhere' } };
  });
  expect((await send(`http://127.0.0.1:${port}/`)).status).toBe(302);
  expect(asked).toBe(1);
});

test('nobody there, no answer in time, no address: each rejects with its reason', async () => {
  await expect(send('http://127.0.0.1:1/')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  await expect(send('no address')).rejects.toThrow(/Invalid URL/);
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    silent.closeAllConnections();
    silent.close();
  });
  const { port } = silent.address() as { port: number };
  await expect(send(`http://127.0.0.1:${port}/`, AbortSignal.timeout(50))).rejects.toMatchObject({
    name: 'TimeoutError',
  });
});

/** Runs a command in a project whose operator has credentials. */
async function svc(
  args: string[],
  env: Record<string, string> = {},
  below = '.',
): Promise<{ code: number; stderr: string }> {
  const folder = await tempDir();
  await mkdir(join(folder, '.svc'), { mode: 0o700 });
  await mkdir(join(folder, below), { recursive: true });
  const operator = {
    clientId: 'client_1',
    clientSecret: 'the-secret',
    hostId: 'operator',
    namespaceId: 'default',
  };
  await writeFile(join(folder, '.svc', 'credentials.json'), JSON.stringify(operator), { mode: 0o600 });
  return new Promise((resolve) =>
    execFile(
      process.execPath,
      [entryFile('cli'), ...args],
      { cwd: join(folder, below), env: { PATH: process.env.PATH, HOME: folder, ...env } },
      (error, _stdout, stderr) => resolve({ code: error ? Number(error.code) : 0, stderr }),
    ),
  );
}

const outside = Object.values(networkInterfaces())
  .flat()
  .find((address) => address && !address.internal && address.family === 'IPv4')?.address;

test.skipIf(outside === undefined)(
  'the operator of this machine is shown to no gateway elsewhere',
  async () => {
    let asked = 0;
    const { port } = await startServer(() => ({ status: ++asked && 401 }), outside);
    const { code, stderr } = await svc(['whoami', '--url', `http://${outside}:${port}`]);
    expect([code, asked]).toEqual([4, 0]);
    expect(stderr).toContain(`svc login <client> --url http://${outside}:${port}`);
  },
);

test('in a folder below one whose platform has no config file, it is told where to go', async () => {
  const { code, stderr } = await svc(['plugins', 'list'], {}, 'plugins/orders');
  expect(code).toBe(4);
  expect(stderr).toMatch(
    /no credentials in (.+)\/plugins\/orders\/\.svc[\s\S]*There is a platform in \1: run this there/,
  );
});

test('an address that is none is a usage error, from the flag and from the environment', async () => {
  const flag = await svc(['whoami', '--url', 'localhost:4000']);
  expect([flag.code, flag.stderr]).toEqual([2, expect.stringContaining('--url must be an address')]);
  const variable = await svc(['webhooks', 'list'], { SVC_GATEWAY_URL: 'nonsense' });
  expect([variable.code, variable.stderr]).toEqual([2, expect.stringContaining('SVC_GATEWAY_URL must be')]);
});
