import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { verify as verifyGithub } from '@octokit/webhooks-methods';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Stripe } from 'stripe';
import { expect, onTestFinished, test, vi } from 'vitest';
import { entryFile } from '../../src/kit/files/paths.ts';
import { runCli } from '../support/cli.ts';
import { tempDir } from '../support/daemon.ts';
import { ADMIN_TOKEN, type TestGateway } from '../support/gateway.ts';
import { secretOf, send, startSenders } from '../support/webhook-senders.ts';

/** `svc` as an admin of a gateway elsewhere. */
async function remote() {
  const gateway = await startSenders();
  const cwd = await tempDir();
  const args = (words: string[], url = gateway.url) => [...words, '--url', url, '--token', ADMIN_TOKEN];
  const options = { cwd, env: { PATH: process.env.PATH } };
  const run = (words: string[], stdin?: string) => runCli(args(words), { ...options, stdin });
  const result = async (...words: string[]) => {
    const envelope = JSON.parse((await run([...words, '--json'])).stdout);
    return envelope.ok ? envelope.result : envelope.error;
  };
  const follow = (words: string[], url?: string) => {
    const child = spawn(process.execPath, [entryFile('cli'), ...args(words, url)], options);
    const output = { stdout: '', stderr: '' };
    child.stdout.on('data', (text) => (output.stdout += text));
    child.stderr.on('data', (text) => (output.stderr += text));
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    onTestFinished(() => void child.kill('SIGKILL'));
    return {
      output,
      stop: () => {
        child.kill('SIGINT');
        return ended;
      },
    };
  };
  return { gateway, run, result, follow };
}

test('provision --secret-stdin accepts the secret of the sender and does not echo it', async () => {
  const { gateway, run } = await remote();
  const given = await run(
    ['webhooks', 'provision', 'senders', 'sync', '--secret-stdin'],
    'made-by-the-sender\n',
  );
  expect([given.code, given.stdout]).toEqual([0, expect.stringContaining('(as provided)')]);
  expect(given.stdout + given.stderr).not.toContain('made-by-the-sender');
  expect((await send(gateway, 'sync', 'made-by-the-sender', { id: 1 })).status).toBe(200);
  expect((await run(['webhooks', 'provision', 'senders', 'sync', '--secret-stdin'], '')).code).toBe(2);
});

test('provision reports that the sender generates the secret, unless a secret was passed', async () => {
  const { run } = await remote();
  const made = await run(['webhooks', 'provision', 'senders', 'stripe']);
  expect(made.code).toBe(0);
  expect(made.stderr).toMatch(
    /Stripe only accepts the secret it generated itself.*provision senders stripe --secret-stdin/,
  );
  expect((await run(['webhooks', 'provision', 'senders', 'github'])).stderr).not.toContain('secret-stdin');
  const again = await run(['webhooks', 'provision', 'senders', 'stripe']);
  expect([again.code, again.stderr]).toEqual([1, expect.stringMatching(/--generate[\s\S]*CONFLICT/)]);
  expect((await run(['webhooks', 'provision', 'senders', 'stripe', '--generate'])).stdout).toMatch(
    /rotated +yes\nlimit +100000 deliveries per minute/,
  );
  const given = await run(['webhooks', 'provision', 'senders', 'stripe', '--secret-stdin'], 'whsec_theirs');
  expect([given.code, given.stderr]).toEqual([0, expect.not.stringContaining('Stripe signs')]);
});

test('a sample delivery is sent, listed, shown and replayed', async () => {
  const { gateway, run, result } = await remote();
  await secretOf(gateway, 'github');
  const secret = await secretOf(gateway, 'sync');
  expect(await result('webhooks', 'send', 'senders', 'github')).toMatchObject({ status: 200 });
  const failed = await run([
    'webhooks',
    'send',
    'senders',
    'sync',
    '--data',
    '{"id":1,"n":"f","failTimes":1}',
  ]);
  expect([failed.code, failed.stdout]).toEqual([1, expect.stringContaining('NOT_NOW')]);
  expect((await run(['webhooks', 'send', 'senders', 'sync', '--data', '{'])).code).toBe(2);
  await send(gateway, 'sync', `${secret}x`, {});

  const { items } = await result('webhooks', 'deliveries', '--status', 'failed');
  expect(items).toMatchObject([{ event: 'sync', reason: 'NOT_NOW: Try again' }]);
  expect((await run(['webhooks', 'deliveries', '--search', '"hello"'])).stdout).toMatch(
    /succeeded +senders +github/,
  );
  const [refused] = (await result('webhooks', 'deliveries', '--status', 'refused')).items;
  const shown = await run(['webhooks', 'show', refused.webhookId]);
  expect(shown.stdout).toContain('authentication  mismatch');
  expect(shown.stdout).toMatch(/^not protected +body, URL, time$/m);
  const { webhookId } = items[0];
  expect((await run(['webhooks', 'replay', '--failed', '--since', '1h'])).stdout).toMatch(
    /Replayed as|1 deliveries/,
  );
  await vi.waitFor(
    async () =>
      expect(
        (await result('webhooks', 'deliveries', '--event', 'sync', '--status', 'succeeded')).items,
      ).toMatchObject([{ origin: 'replay', replayOf: webhookId }]),
    { timeout: 20_000, interval: 200 },
  );
  expect((await run(['webhooks', 'replay'])).code).toBe(2);
  expect((await run(['webhooks', 'replay', '--failed'])).code).toBe(2);
  expect((await run(['webhooks', 'replay', webhookId, '--dry-run'])).code).toBe(2);
  expect((await run(['webhooks', 'replay', '--all', '--search', ''])).code).toBe(2);
  const dry = await result('webhooks', 'replay', '--succeeded', '--all', '--plugin', 'senders', '--dry-run');
  expect(dry).toMatchObject({ matching: { isComplete: true }, items: [] });
  expect(dry.matching.count).toBeGreaterThan(0);
  const text = await run(['webhooks', 'replay', '--succeeded', '--all', '--search', 'nowhere']);
  expect([text.code, text.stdout]).toEqual([0, 'Replayed 0 deliveries.\n']);
});

test('a payload comes from text, a file or stdin, and invalid JSON is reported with its source', async () => {
  const { gateway, run } = await remote();
  await secretOf(gateway, 'sync');
  const send = (data: string, stdin = '') =>
    run(['webhooks', 'send', 'senders', 'sync', '--data', data], stdin);
  for (const stdin of ['-', '@-']) expect((await send(stdin, '{"id": 1}')).code).toBe(0);
  const refused = await send('-', '{');
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining('--data: stdin is not valid JSON'),
  ]);
});

test('a webhook is paused and resumed', async () => {
  const { gateway, run } = await remote();
  const secret = await secretOf(gateway, 'sync');
  expect((await run(['webhooks', 'pause', 'senders', 'sync'])).stdout).toContain('503');
  expect((await run(['webhooks', 'list'])).stdout).toMatch(/senders +sync +\S+ +yes, paused /);
  expect((await send(gateway, 'sync', secret, { id: 1 })).status).toBe(503);
  expect((await run(['webhooks', 'resume', 'senders', 'sync'])).code).toBe(0);
  expect((await send(gateway, 'sync', secret, { id: 1 })).status).toBe(200);
  expect((await run(['webhooks', 'pause', 'senders', 'nothing'])).code).toBe(1);
});

test('tail --json prints one document per line, for each delivery and for each end', async () => {
  const { gateway, run, follow } = await remote();
  const secret = await secretOf(gateway, 'queued');
  // Paused, so that the delivery is told before it ends, however late the tail connects.
  expect((await run(['webhooks', 'pause', 'senders', 'queued'])).code).toBe(0);
  const tail = follow(['webhooks', 'tail', '--json', '--cursor', '0']);
  await send(gateway, 'queued', secret, { id: 't', n: 1 });
  const lines = () =>
    tail.output.stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line).status);
  await expect.poll(lines).toEqual(['accepted']);
  expect((await run(['webhooks', 'resume', 'senders', 'queued'])).code).toBe(0);
  await expect.poll(lines).toEqual(['accepted', 'succeeded']);
  expect(await tail.stop()).toBe(130);
  expect(tail.output.stderr).toMatch(/--cursor \d+/);
});

/** A program that a developer runs: keeps what it was sent. */
async function startProgram() {
  const received: Array<{ headers: IncomingMessage['headers']; body: string }> = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    request.on('end', () => {
      received.push({ headers: request.headers, body });
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { received, url: `http://127.0.0.1:${(server.address() as { port: number }).port}/hook` };
}

test('listen forwards authentic deliveries, reports a lost connection, and catches up', async () => {
  const { gateway: first, follow } = await remote();
  const program = await startProgram();
  const secret = await secretOf(first, 'queued');
  // In between, so that the gateway can go and come back at one address.
  const relay = await startRelay(first);
  const listen = follow(['webhooks', 'listen', '--forward', program.url, '--cursor', '0'], relay.url);
  const sent = await send(
    first,
    'queued',
    secret,
    { id: 'l1', n: 1 },
    { headers: { 'x-gitlab-event': 'Push Hook', cookie: 'session=1', 'x-api-key': 'k' } },
  );
  await send(first, 'queued', 'wrong', { id: 'l2' });
  await vi.waitFor(() => expect(program.received).toHaveLength(1), { timeout: 10_000 });
  expect(program.received[0]).toMatchObject({
    body: '{"id":"l1","n":1}',
    headers: {
      'x-webhook-id': sent.headers.get('x-webhook-id'),
      'x-webhook-event': 'queued',
      'content-type': 'application/json',
      'x-gitlab-event': 'Push Hook',
    },
  });
  for (const secretHeader of ['x-token', 'cookie', 'x-api-key'])
    expect(program.received[0]!.headers[secretHeader]).toBeUndefined();
  relay.cut();
  await vi.waitFor(() => expect(listen.output.stderr).toContain('DISCONNECTED'), { timeout: 10_000 });
  await send(first, 'queued', secret, { id: 'l3', n: 3 });
  relay.mend();
  await vi.waitFor(() => expect(program.received.map(({ body }) => JSON.parse(body).n)).toEqual([1, 3]), {
    timeout: 15_000,
  });
  expect(listen.output.stderr).toContain('Reconnected');
  expect(await listen.stop()).toBe(130);
});

test('listen follows no redirect: a delivery and its signature are sent only to the given address', async () => {
  const { gateway, follow, result } = await remote();
  const elsewhere = await startProgram();
  const redirecting = createServer((_request, response) =>
    response.writeHead(307, { location: elsewhere.url }).end(),
  );
  await new Promise<void>((resolve) => redirecting.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void redirecting.close());
  await secretOf(gateway, 'github');
  await result('webhooks', 'send', 'senders', 'github');
  const url = `http://127.0.0.1:${(redirecting.address() as { port: number }).port}`;
  const listen = follow(['webhooks', 'listen', '--forward', url, '--cursor', '0']);
  await vi.waitFor(() => expect(listen.output.stdout).toContain('-> 307'), { timeout: 10_000 });
  expect(elsewhere.received).toEqual([]);
  expect(await listen.stop()).toBe(130);
});

test("forwarded deliveries carry a signature that the senders' libraries verify, and never a secret", async () => {
  const { gateway, follow, result } = await remote();
  const program = await startProgram();
  const github = await secretOf(gateway, 'github');
  const standard = await secretOf(gateway, 'standard-webhooks');
  const stripe = await secretOf(gateway, 'stripe');
  const shared = await secretOf(gateway, 'sync');
  const forward = ['webhooks', 'listen', '--forward', program.url, '--cursor', '0'];
  const listen = follow([...forward, '--header', 'X-Local: yes']);
  for (const event of ['github', 'standard-webhooks', 'stripe'])
    await result('webhooks', 'send', 'senders', event);
  await send(gateway, 'sync', shared, { id: 'kept', n: 1 });
  await vi.waitFor(() => expect(program.received).toHaveLength(4), { timeout: 20_000 });
  const of = (event: string) => program.received.find(({ headers }) => headers['x-webhook-event'] === event)!;
  const header = (event: string, name: string) => String(of(event).headers[name]);

  expect(await verifyGithub(github, of('github').body, header('github', 'x-hub-signature-256'))).toBe(true);
  // The gateway's clock is a test's; the libraries look at ours.
  vi.useFakeTimers({ now: gateway.clock.now(), toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const headers = of('standard-webhooks').headers as Record<string, string>;
  expect(() => new StandardWebhook(standard).verify(of('standard-webhooks').body, headers)).not.toThrow();
  const signed = header('stripe', 'stripe-signature');
  expect(() =>
    new Stripe('key_unused').webhooks.constructEvent(of('stripe').body, signed, stripe),
  ).not.toThrow();
  expect(JSON.stringify(of('sync').headers)).not.toContain(shared);
  expect(program.received.map((each) => each.headers['x-local'])).toEqual(['yes', 'yes', 'yes', 'yes']);
  expect(await listen.stop()).toBe(130);
});

test('tail follows a remote gateway with the stored login, and renews it', async () => {
  const { gateway, result } = await remote();
  const secret = await secretOf(gateway, 'queued');
  const { clientId, clientSecret } = await result('clients', 'create', 'laptop', '--namespace', 'default');
  const home = await tempDir();
  const program = [entryFile('cli'), '--url', gateway.url];
  const env = { PATH: process.env.PATH, HOME: home };
  const loggedIn = spawn(process.execPath, [...program, 'login', clientId], { cwd: home, env });
  loggedIn.stdin.end(clientSecret);
  expect(await new Promise((resolve) => loggedIn.once('exit', resolve))).toBe(0);
  const file = join(home, '.config/svc/logins.json');
  const logins = JSON.parse(await readFile(file, 'utf8'));
  logins[gateway.url].expiresAt = 0;
  await writeFile(file, JSON.stringify(logins));

  await send(gateway, 'queued', secret, { id: 't', n: 1 });
  const tail = spawn(process.execPath, [...program, 'webhooks', 'tail', '--json', '--cursor', '0'], {
    cwd: home,
    env,
  });
  onTestFinished(() => void tail.kill('SIGKILL'));
  let stdout = '';
  tail.stdout.on('data', (text) => (stdout += text));
  await vi.waitFor(() => expect(stdout).toContain('"event":"queued"'), { timeout: 15_000 });
  expect(JSON.parse(await readFile(file, 'utf8'))[gateway.url].expiresAt).toBeGreaterThan(0);
});

/** A way to the gateway that can be cut. */
async function startRelay(gateway: TestGateway) {
  const { connect, createServer: createTcpServer } = await import('node:net');
  const sockets = new Set<import('node:net').Socket>();
  let whole = true;
  const server = createTcpServer((socket) => {
    if (!whole) return void socket.destroy();
    const onward = connect(gateway.port, '127.0.0.1');
    for (const each of [socket, onward]) {
      sockets.add(each);
      each.on('error', () => {}).on('close', () => sockets.delete(each));
    }
    socket.pipe(onward).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    cut() {
      whole = false;
      for (const socket of sockets) socket.destroy();
    },
    mend() {
      whole = true;
    },
  };
}

test('rotation shows which senders still use the previous secret', async () => {
  const { gateway, run, result } = await remote();
  const target = ['senders', 'sync'];
  const rotation = () => run(['webhooks', 'rotation', ...target]);
  expect((await rotation()).stdout).toBe('The webhook has no secret.\n');
  const { secret: previous } = await result('webhooks', 'provision', ...target);
  const { secret: current } = await result('webhooks', 'provision', ...target);
  for (const [id, secret] of [previous, previous, previous, current].entries())
    expect((await send(gateway, 'sync', secret, { id })).status).toBe(200);
  expect(await result('webhooks', 'rotation', ...target)).toMatchObject({
    ...{ previous: 3, current: 1, complete: true },
    senders: [{ source: '127.0.0.1', previous: 3, current: 1, latest: 'current' }],
  });
  const { stdout } = await rotation();
  expect(stdout).toMatch(
    /The previous secret expires at .*\nDeliveries with the previous secret: 3 of 4 \(75%\)/,
  );
  expect(stdout).toMatch(/127\.0\.0\.1 +3 of 4 \(75%\) +current/);
  expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  expect((await run(['webhooks', 'rotation', 'senders', 'none'])).stderr).toContain('WEBHOOK_NOT_FOUND');
});
