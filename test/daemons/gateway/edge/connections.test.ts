import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createPeers } from '../../../../src/daemons/peers.ts';
import {
  handlerRuns,
  MEMBER_TOKEN,
  provision,
  startGateway,
  type TestGateway,
} from '../../../support/gateway.ts';
import { startUpstream } from '../support/echo-upstream.ts';

/** A gateway with a webhook, before an upstream. `post`: a delivery as it stands on the wire. */
async function start() {
  const upstream = await startUpstream();
  const gateway = await startGateway({
    peers: createPeers({ rest: upstream.url, workflow: upstream.url }),
  });
  const secret = await provision(gateway, 'created');
  const post = (payload: object): string => {
    const body = JSON.stringify(payload);
    const signature = createHmac('sha256', secret).update(body).digest('hex');
    const headers = `X-Svc-Namespace: default\r\nX-Signature: sha256=${signature}\r\n`;
    return `POST /webhooks/%40acme%2Forders/created HTTP/1.1\r\nHost: a\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  };
  return { gateway, upstream, post };
}

const NATIVE = 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n';
const PROXIED = `GET /api/v1/x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${MEMBER_TOKEN}\r\n\r\n`;

interface Client {
  socket: Socket;
  /** The answers so far, each with its head. */
  answers(): string[];
  closed: Promise<void>;
}

/** `allowHalfOpen`: as clients that notice the end of a connection only when they next use it. */
async function client({ port }: TestGateway, allowHalfOpen = false): Promise<Client> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen, noDelay: true });
  onTestFinished(() => void socket.destroy());
  let text = '';
  socket.setEncoding('utf8').on('data', (part) => {
    text += part;
  });
  const closed = new Promise<void>((resolve) => socket.on('error', () => {}).on('close', () => resolve()));
  await once(socket, 'connect');
  return { socket, answers: () => text.split(/(?=HTTP\/1\.1 \d{3} )/).filter(Boolean), closed };
}

/** What an answer is of: the number that a delivery brought, `health` or the path that the upstream saw. */
function contentOf(answer: string): unknown {
  const body = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4));
  return body.result?.saw.n ?? body.url ?? body.service;
}

test('one connection carries deliveries, proxied calls and native calls in turn, and stays open', async () => {
  const { gateway, post } = await start();
  const { socket, answers } = await client(gateway);
  const contents = ['drei €', '/api/v1/x', 'gateway', 2];
  for (const [at, text] of [post({ n: 'drei €' }), PROXIED, NATIVE, post({ n: 2 })].entries()) {
    socket.write(text);
    await expect.poll(() => answers().map(contentOf)).toEqual(contents.slice(0, at + 1));
  }
  for (const answer of answers())
    expect(answer).toMatch(/\r\nConnection: keep-alive\r\nKeep-Alive: timeout=60\r\n/i);
});

test('pipelined requests are answered in order', async () => {
  const { gateway, post } = await start();
  const { socket, answers } = await client(gateway);
  socket.write(post({ n: 1, sleepMs: 100 }) + NATIVE + post({ n: 2 }) + PROXIED + post({ n: 3 }));
  await expect.poll(() => answers().length).toBe(5);
  expect(answers().map(contentOf)).toEqual([1, 'gateway', 2, '/api/v1/x', 3]);
});

test('a delivery split at any byte arrives complete', async () => {
  const { gateway, post } = await start();
  const text = post({ n: 'cut' });
  const cuts = Array.from({ length: Math.ceil(text.length / 4) }, (_, at) => 1 + at * 4);
  const clients = await Promise.all(cuts.map(() => client(gateway)));
  for (const [at, { socket }] of clients.entries()) socket.write(text.slice(0, cuts[at]));
  // The gateway has read the first parts once it has answered a later request.
  expect((await gateway.fetch('/health')).status).toBe(200);
  for (const [at, { socket }] of clients.entries()) socket.write(text.slice(cuts[at]));
  for (const { answers } of clients) await expect.poll(() => answers().map(contentOf)).toEqual(['cut']);
});

test('a client that half-closes within a request gets 400', async () => {
  const { gateway, post } = await start();
  for (const text of [post({ n: 1 }).slice(0, -2), 'POST /webh', PROXIED.slice(0, -2)]) {
    const { socket, answers, closed } = await client(gateway);
    socket.end(text);
    await closed;
    expect(answers()).toEqual([expect.stringMatching(/^HTTP\/1\.1 400 .*not well-formed/s)]);
  }
  expect(handlerRuns(gateway)).toBe(0);
});

test('a sender that half-closes after a delivery gets its answer, then the end', async () => {
  const { gateway, post } = await start();
  const { socket, answers, closed } = await client(gateway);
  socket.end(post({ n: 1, sleepMs: 50 }) + post({ n: 2 }));
  await closed;
  expect(answers().map(contentOf)).toEqual([1, 2]);
});

test('a refused delivery whose body has arrived keeps the connection', async () => {
  const { gateway, post } = await start();
  const { socket, answers } = await client(gateway);
  const unknown = post({ n: 1 }).replace('/created', '/unknown');
  socket.write(unknown + post({ n: 2 }));
  await expect.poll(() => answers().length).toBe(2);
  expect(answers()[0]).toMatch(/^HTTP\/1\.1 404 .*\r\nconnection: keep-alive\r\n/is);
  expect(contentOf(answers()[1]!)).toBe(2);
});

test.each([
  ['a malformed request', 'nonsense\r\n\r\n', 400],
  ['a CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n', 501],
  [
    'an upgrade',
    'GET /none HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    404,
  ],
])('%s behind a delivery is answered after it', async (_what, text, status) => {
  const { gateway, post } = await start();
  const { socket, answers, closed } = await client(gateway);
  socket.write(post({ n: 1, sleepMs: 50 }) + text);
  await closed;
  expect(answers().length).toBe(2);
  expect(contentOf(answers()[0]!)).toBe(1);
  expect(answers()[1]).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
});

test('a client that disconnects before its answer does not disturb others', async () => {
  const { gateway, post } = await start();
  const gone = await client(gateway);
  gone.socket.write(post({ n: 1, sleepMs: 50 }));
  await expect.poll(() => handlerRuns(gateway)).toBe(1);
  gone.socket.resetAndDestroy();
  const { socket, answers } = await client(gateway);
  socket.write(post({ n: 2 }));
  await expect.poll(() => answers().map(contentOf)).toEqual([2]);
});

test('a drain answers requests in flight, and closes idle connections and those without a request', async () => {
  const { gateway, post } = await start();
  const [used, fresh, busy] = await Promise.all([1, 2, 3].map(() => client(gateway, true)));
  used!.socket.write(post({ n: 1 }));
  await expect.poll(() => used!.answers().length).toBe(1);
  busy!.socket.write(post({ n: 2, sleepMs: 300 }));
  await expect.poll(() => handlerRuns(gateway)).toBe(2);
  const startedAt = performance.now();
  const ends = [used!, fresh!, busy!].map(({ socket }) => once(socket, 'end'));
  const closing = gateway.close();
  await Promise.all(ends);
  for (const { socket } of [used!, fresh!, busy!]) socket.write(post({ n: 3 }));
  await closing;
  // Long before the 8 s at which a drain cuts what is left.
  expect(performance.now() - startedAt).toBeLessThan(7000);
  expect(busy!.answers().map(contentOf)).toEqual([2]);
  expect(busy!.answers()[0]).toMatch(/\r\nconnection: close\r\n/i);
  expect(handlerRuns(gateway)).toBe(2);
});
