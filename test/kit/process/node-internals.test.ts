import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createHistogram } from 'node:perf_hooks';
import { expect, onTestFinished, test } from 'vitest';
import {
  answerHalfClosed,
  hasBegunResponse,
  KILL_METHODS,
  listeningHandle,
  nativeClassesIn,
  PIPE_CONNECT_METHODS,
  pendingResponse,
  pipePrototype,
} from '../../../src/kit/process/node-internals.ts';
import { tempDir } from '../../support/daemon.ts';

async function listening<Listening extends Server>(server: Listening, path?: string): Promise<Listening> {
  server.listen(path === undefined ? { port: 0, host: '127.0.0.1' } : { path });
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return server;
}

async function connected(server: Server): Promise<{ client: Socket; socket: Socket }> {
  const address = server.address() as AddressInfo | string;
  const client = typeof address === 'string' ? connect(address) : connect(address.port, address.address);
  const [socket] = (await once(server, 'connection')) as [Socket];
  onTestFinished(() => {
    client.destroy();
    socket.destroy();
  });
  return { client, socket };
}

test('a server listens on the handle of another one, whose port it has', async () => {
  expect(listeningHandle(createServer())).toBeUndefined();
  const first = await listening(createServer());
  const handle = listeningHandle(first)!;
  expect(handle.close).toBeTypeOf('function');
  const second = createServer();
  second.listen({ ...handle, handle } as object);
  await once(second, 'listening');
  expect(second.address()).toEqual(first.address());
  second.unref();
});

test('the prototype of a pipe has the functions that connect it; a TCP socket has no such prototype', async () => {
  const pipe = await connected(await listening(createServer(), join(await tempDir(), 'pipe')));
  const prototype = pipePrototype(pipe.client)!;
  expect(prototype.connect).toBeTypeOf('function');
  expect(prototype).toBe(pipePrototype(pipe.socket));
  const tcp = await connected(await listening(createServer()));
  expect(pipePrototype(tcp.client)).toBeUndefined();
});

test('pipes connect by the methods that the sandbox guards, and by no others', async () => {
  const pipe = await connected(await listening(createServer(), join(await tempDir(), 'pipe')));
  const names = Object.getOwnPropertyNames(pipePrototype(pipe.client)!).filter((name) =>
    /connect/i.test(name),
  );
  expect(names).not.toEqual([]);
  expect(PIPE_CONNECT_METHODS).toEqual(expect.arrayContaining(names));
});

test('the process sends signals by the methods that the sandbox guards, and by no others', () => {
  const names = Object.getOwnPropertyNames(process).filter((name) => /kill/i.test(name));
  expect(names.toSorted()).toEqual([...KILL_METHODS].toSorted());
});

test('the native class of a histogram has the import that the sandbox closes', () => {
  const importing = nativeClassesIn(createHistogram()).filter((native) => 'import' in native);
  expect(importing).toHaveLength(1);
});

test('a socket has its pending response, which tells whether it has begun', async () => {
  const server = await listening(createHttpServer());
  const { client, socket } = await connected(server);
  expect([pendingResponse(socket), hasBegunResponse(socket)]).toEqual([undefined, false]);
  client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  const [, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse];
  expect(pendingResponse(socket) === response).toBe(true);
  response.writeHead(200);
  expect([hasBegunResponse(socket), response.headersSent]).toEqual([false, true]);
  await new Promise((resolve) => response.write('a', resolve));
  expect(hasBegunResponse(socket)).toBe(true);
  response.end();
  await once(response, 'finish');
  expect([pendingResponse(socket), hasBegunResponse(socket)]).toEqual([undefined, false]);
});

test('a client that has ended its side still gets its response', async () => {
  const server = await listening(createHttpServer());
  answerHalfClosed(server);
  const { client, socket } = await connected(server);
  client.end('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  const [, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse];
  if (!socket.readableEnded) await once(socket, 'end');
  response.end('answer');
  let text = '';
  for await (const chunk of client) text += chunk;
  expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\r\n\r\nanswer$/s);
});
