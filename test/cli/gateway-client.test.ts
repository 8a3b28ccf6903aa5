import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chown, mkdir, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { lightFetch } from '../../src/cli/light-fetch.ts';
import { type CliRun, runCli } from '../support/cli.ts';
import { tempDir } from '../support/daemon.ts';
import { runSvc } from './svc.ts';

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

test('a request is sent with its headers, and its response has status, headers and text', async () => {
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

test('redirects are not followed: the token is sent to no other address', async () => {
  let asked = 0;
  const { port } = await startServer(() => {
    asked++;
    return { status: 302, headers: { location: '/elsewhere' } };
  });
  expect((await send(`http://127.0.0.1:${port}/`)).status).toBe(302);
  expect(asked).toBe(1);
});

test('a refused connection, a timeout and an unresolved address each reject with their reason', async () => {
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
async function svc(args: string[], env: Record<string, string> = {}): Promise<CliRun> {
  const folder = await tempDir();
  await mkdir(join(folder, '.svc'), { mode: 0o700 });
  const operator = {
    clientId: 'client_1',
    clientSecret: 'the-secret',
    hostId: 'operator',
    namespaceId: 'default',
  };
  await writeFile(join(folder, '.svc', 'credentials.json'), JSON.stringify(operator), { mode: 0o600 });
  return runCli(args, { cwd: folder, env: { PATH: process.env.PATH, HOME: folder, ...env } });
}

const outside = Object.values(networkInterfaces())
  .flat()
  .find((address) => address && !address.internal && address.family === 'IPv4')?.address;

test.skipIf(outside === undefined)(
  'the local operator credentials are sent to no remote gateway',
  async () => {
    let asked = 0;
    const { port } = await startServer(() => ({ status: ++asked && 401 }), outside);
    const { code, stderr } = await svc(['whoami', '--url', `http://${outside}:${port}`]);
    expect([code, asked]).toEqual([4, 0]);
    expect(stderr).toContain(`svc login <client> --url http://${outside}:${port}`);
  },
);

test('a platform without a config file is found from the subfolders of its folder', async () => {
  const project = await tempDir();
  const below = join(project, 'plugins/orders');
  await mkdir(below, { recursive: true });
  await mkdir(join(project, '.svc'), { mode: 0o700 });
  const credentials = join(project, '.svc/credentials.json');
  await writeFile(credentials, '{}', { mode: 0o600 });
  const shown = async (cwd: string) => (await runSvc(cwd, ['config', 'show', '--json'])).json.result;
  expect(await shown(below)).toMatchObject({ projectDir: project, dataDir: join(project, '.svc') });
  expect((await runSvc(below, ['status'])).stdout).toContain('svc up -d');
  if (process.getuid?.() !== 0) return;
  await chown(credentials, 12_345, 12_345);
  expect(await shown(below)).toMatchObject({ projectDir: below });
});

test('an untrusted certificate is reported as such, with a remedy', async () => {
  const folder = await tempDir();
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const subject = [
    '-subj',
    '/CN=localhost',
    '-addext',
    'subjectAltName=DNS:localhost',
    '-days',
    '1',
    '-nodes',
  ];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-keyout', key, '-out', cert, ...subject], {
    stdio: 'ignore',
  });
  const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_request, response) =>
    response.end(JSON.stringify({ hostId: 'me', namespaceId: 'default', kind: 'static', admin: false })),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = `https://localhost:${(server.address() as AddressInfo).port}`;
  const call = ['whoami', '--url', url, '--token', 't'];

  const { code, json } = await runSvc(folder, [...call, '--json']);
  expect(code).toBe(5);
  expect(json.error).toMatchObject({
    code: 'UPSTREAM_UNAVAILABLE',
    message: expect.stringMatching(/The certificate of the gateway at .+ is not trusted: self-signed/),
    details: { reason: 'DEPTH_ZERO_SELF_SIGNED_CERT', hint: expect.stringContaining('NODE_EXTRA_CA_CERTS') },
  });
  expect((await runSvc(folder, call)).stderr).toContain('hint Set NODE_EXTRA_CA_CERTS=');
  expect((await runSvc(folder, [...call, '--json'], { NODE_EXTRA_CA_CERTS: cert })).json.ok).toBe(true);
});

test('an invalid address in the flag or the environment is a usage error', async () => {
  const flag = await svc(['whoami', '--url', 'localhost:4000']);
  expect([flag.code, flag.stderr]).toEqual([2, expect.stringContaining('--url must be an address')]);
  const variable = await svc(['webhooks', 'list'], { SVC_GATEWAY_URL: 'nonsense' });
  expect([variable.code, variable.stderr]).toEqual([2, expect.stringContaining('SVC_GATEWAY_URL must be')]);
});
