import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createPeers } from '../../../../../src/daemons/peers.ts';
import { answerWhileSending } from '../../../../support/late-body.ts';
import { exchangeBytes } from '../../support/raw-http.ts';
import { CI_HEADERS, CI_TOKEN, startGateway } from '../../support/start-gateway.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

/** A gateway before an upstream that is nothing but sockets; `heads`: the request lines that reached it, in order. */
async function startBefore(onRequest: (socket: Socket, number: number) => void) {
  const heads: string[] = [];
  const server = createServer((socket) => {
    socket.setEncoding('latin1').on('data', (text) => {
      for (const [line] of String(text).matchAll(/^(?:GET|POST|PUT|DELETE) \S+/gm)) {
        heads.push(line);
        onRequest(socket, heads.length);
      }
    });
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const gateway = await startGateway({ peers: createPeers({ rest: url, workflow: url }) });
  return { gateway, heads };
}

describe('a kept connection that the upstream closes as the request is sent', () => {
  const ask = async (method: string, body?: string) => {
    const { gateway, heads } = await startBefore((socket, number) => {
      if (number === 2) socket.destroy();
      else socket.write(OK);
    });
    await gateway.fetch('/api/v1/1', { headers: CI_HEADERS });
    const response = await gateway.fetch('/api/v1/2', {
      method,
      headers: CI_HEADERS,
      ...(body ? { body } : {}),
    });
    return { status: response.status, heads: heads.slice(1) };
  };

  test('is retried for a GET', async () => {
    expect(await ask('GET')).toEqual({ status: 200, heads: ['GET /api/v1/2', 'GET /api/v1/2'] });
  });

  test.each([
    ['POST', '{}'],
    ['POST', undefined],
    ['POST', 'x'.repeat(100_000)],
    ['PUT', '{}'],
    ['DELETE', undefined],
  ])('is never retried for a %s', async (method, body) => {
    expect(await ask(method, body)).toEqual({ status: 502, heads: [`${method} /api/v1/2`] });
  });
});

test('bytes that an upstream sends on an idle connection belong to no answer', async () => {
  const { gateway } = await startBefore((socket, number) => {
    socket.write(OK);
    if (number === 1) setTimeout(() => socket.write(OK.replace('ok', 'no')), 20);
  });
  for (const method of ['GET', 'POST', 'GET']) {
    const response = await gateway.fetch('/api/v1/x', { method, headers: CI_HEADERS });
    expect([response.status, await response.text()]).toEqual([200, 'ok']);
    await sleep(50);
  }
});

const UNREAD = {
  'answers without reading the body': (socket: Socket) =>
    socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n'),
  'ends without reading the body': (socket: Socket) => socket.destroy(),
};

describe.each(Object.entries(UNREAD))('an upstream that %s fails no later call', (_what, act) => {
  test.each([
    ['announced', (text: string) => `content-length: ${text.length}\r\n\r\n${text}`],
    [
      'in chunks',
      (text: string) =>
        `transfer-encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`,
    ],
  ])('%s', async (_how, body) => {
    const { gateway } = await startBefore((socket) => {
      socket.pause();
      // Once its connection takes no more.
      setTimeout(() => act(socket), 300);
    });
    const start = (method: string) =>
      `${method} /api/v1/x HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${CI_TOKEN}\r\n`;
    const both = `${start('POST')}${body('x'.repeat(8_000_000))}${start('GET')}\r\n`;
    const answer = await exchangeBytes(gateway, both, 1000);
    expect(answer.match(/HTTP\/1\.1 (?:413|502)/g)).toHaveLength(2);
  });
});

test('bodies of every size arrive whole, in one piece or in many', async () => {
  const gateway = await startGateway();
  for (const size of [0, 1, 1024, 8192, 8193, 300_000]) {
    const body = 'é'.repeat(size);
    const response = await gateway.fetch('/api/v1/x', { method: 'POST', headers: CI_HEADERS, body });
    expect(response.status).toBe(200);
    const seen = gateway.upstream.seen.pop()!;
    expect(seen.body === body, `${size}`).toBe(true);
    expect(seen.headers['content-length']).toBe(String(size * 2));
  }
  const head = `POST /api/v1/x HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${CI_TOKEN}\r\ncontent-length: 4\r\n\r\n`;
  const socket = connect(gateway.port, '127.0.0.1').setNoDelay();
  onTestFinished(() => void socket.destroy());
  for (const part of [head, 'a', 'b', 'cd']) {
    socket.write(part);
    await sleep(30);
  }
  await expect.poll(() => gateway.upstream.seen.at(-1)?.body).toBe('abcd');
});

test('a client about to be disconnected reads an answer that came before its body was sent', async () => {
  const { gateway } = await startBefore((socket) => socket.write(OK));
  const head = `POST /api/v1/x HTTP/1.1\r\nauthorization: Bearer ${CI_TOKEN}\r\nconnection: close\r\n`;
  const { answer, failed } = await answerWhileSending(gateway, head);
  expect(failed).toBeUndefined();
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\nok$/);
});
