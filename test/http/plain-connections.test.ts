import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { type Http, type PlainExchange, type TakePlain, takePlainRequests } from '../../src/http/index.ts';
import { openPlainConnection, type PlainConnection } from '../../src/http/plain/connection.ts';
import { listenBare } from './bare-http.ts';

interface TestServer {
  http: Http;
  port: number;
  /** Bodies of what was taken as plain requests. */
  taken: string[];
  /** How many requests got an answer, of either kind. */
  answers(): number;
}

/** Takes what is posted below /plain, and answers it with its body after the milliseconds that the path names. */
async function start(): Promise<TestServer> {
  const taken: string[] = [];
  const answer = (exchange: PlainExchange, text: string): void =>
    exchange.respond(200, ['content-type', 'text/plain'], text);
  const take: TakePlain = ({ url, body }, exchange) => {
    if (url === '/plain/echoed-in-a-header') {
      expect(() => exchange.respond(200, ['x-echo', body.toString()], '')).toThrow(/Invalid character/);
      exchange.destroy();
      return true;
    }
    const wait = /^\/plain(?:\/(\d+))?$/.exec(url);
    if (!wait) return false;
    taken.push(body.toString());
    if (wait[1] === undefined) answer(exchange, body.toString());
    else setTimeout(() => answer(exchange, body.toString()), Number(wait[1]));
    return true;
  };
  let usual = 0;
  const { http, port } = await listenBare((bare) => {
    takePlainRequests(bare, { prefix: '/plain', take });
    bare.removeAllContentTypeParsers();
    bare.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
    bare.post('/plain', async ({ body }) => {
      usual++;
      return `usual ${body}`;
    });
    bare.get('/other', async () => 'other');
  });
  return { http, port, taken, answers: () => taken.length + usual };
}

function post(body: string, { path = '/plain', headers = '' } = {}): string {
  return `POST ${path} HTTP/1.1\r\nHost: a\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

const GET = 'GET /other HTTP/1.1\r\nHost: a\r\n\r\n';

interface Client {
  socket: Socket;
  received(): string;
  /** The bodies of the answers so far. */
  bodies(): string[];
  closed: Promise<void>;
}

/** `allowHalfOpen`: as clients that notice the end of a connection only when they next use it. */
async function client(port: number, allowHalfOpen = false): Promise<Client> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen });
  onTestFinished(() => void socket.destroy());
  let text = '';
  socket.setEncoding('latin1').on('data', (part) => {
    text += part;
  });
  const closed = new Promise<void>((resolve) => socket.on('error', () => {}).on('close', () => resolve()));
  await new Promise((resolve) => socket.once('connect', resolve));
  return {
    socket,
    received: () => text,
    bodies: () =>
      text
        .split(/(?=HTTP\/1\.1 \d{3} )/)
        .filter((answer) => answer !== '')
        .map((answer) => answer.slice(answer.indexOf('\r\n\r\n') + 4)),
    closed,
  };
}

test('requests on one connection are answered in turn, and it stays', async () => {
  const { port, taken } = await start();
  const { socket, bodies, received } = await client(port);
  for (const [at, body] of ['one', '', 'drei \u20ac'].entries()) {
    socket.write(post(body));
    await expect.poll(() => bodies().length).toBe(at + 1);
  }
  expect(taken).toEqual(['one', '', 'drei \u20ac']);
  expect(Buffer.from(bodies()[2]!, 'latin1').toString()).toBe('drei \u20ac');
  expect(received()).toMatch(
    /^HTTP\/1\.1 200 OK\r\ncontent-type: text\/plain\r\ncontent-length: 3\r\nDate: .{25} GMT\r\nConnection: keep-alive\r\nKeep-Alive: timeout=60\r\n\r\none/,
  );
});

test('what is sent before the answer to the one before is answered after it, whoever answers', async () => {
  const { port, taken } = await start();
  const { socket, bodies } = await client(port);
  socket.write(post('slow', { path: '/plain/100' }) + post('2') + post('3'));
  await sleep(20);
  socket.write(post('4'));
  await sleep(20);
  socket.write(GET + post('5') + GET);
  await expect.poll(() => bodies().length, { timeout: 3000 }).toBe(7);
  expect(bodies()).toEqual(['slow', '2', '3', '4', 'other', 'usual 5', 'other']);
  expect(taken).toEqual(['slow', '2', '3', '4']);
});

test('every cut of a request in two arrives whole', async () => {
  const { port } = await start();
  const text = post('{"a":1}', { headers: 'Content-Type: application/json\r\n' });
  await Promise.all(
    Array.from({ length: text.length - 1 }, async (_, at) => {
      const { socket, bodies } = await client(port);
      socket.setNoDelay(true);
      socket.write(text.slice(0, at + 1));
      await sleep(50);
      socket.write(text.slice(at + 1) + post('next'));
      await expect.poll(() => bodies().length, { timeout: 3000 }).toBe(2);
      expect(bodies()[0]).toMatch(/^(usual )?\{"a":1\}$/);
      expect(bodies()[1]).toMatch(/next$/);
      socket.destroy();
    }),
  );
});

test('one that comes byte by byte is node:http’s, and so is one whose body is late', async () => {
  const { port, taken } = await start();
  const drip = await client(port);
  drip.socket.setNoDelay(true);
  for (const byte of post('drop by drop')) {
    drip.socket.write(byte);
    await sleep(2);
  }
  await expect.poll(() => drip.bodies()).toEqual(['usual drop by drop']);
  const late = await client(port);
  const text = post('late');
  late.socket.write(text.slice(0, -2));
  await sleep(2200);
  late.socket.write(text.slice(-2));
  await expect.poll(() => late.bodies()).toEqual(['usual late']);
  expect(taken).toEqual([]);
});

test('a client that says no more still gets its answers, and then the end', async () => {
  const { port } = await start();
  const { socket, bodies, closed, received } = await client(port);
  socket.end(post('1', { path: '/plain/50' }) + post('2', { path: '/plain/50' }));
  await closed;
  expect(bodies()).toEqual(['1', '2']);
  expect(received().match(/Connection: \S+/g)).toEqual(['Connection: keep-alive', 'Connection: close']);
});

test('one that ends within a request is told so, as node:http tells it', async () => {
  const { port, taken } = await start();
  for (const text of [post('whole').slice(0, -2), post('1') + post('whole').slice(0, -2), 'POST /pl']) {
    const { socket, received, closed } = await client(port);
    socket.end(text);
    await closed;
    expect(received()).toMatch(/HTTP\/1\.1 400 .*not well-formed/s);
  }
  expect(taken).toEqual(['1']);
});

test('one that leaves before its answer harms nobody', async () => {
  const { port, taken } = await start();
  const { socket } = await client(port);
  socket.write(post('gone', { path: '/plain/50' }));
  await expect.poll(() => taken).toEqual(['gone']);
  socket.resetAndDestroy();
  await sleep(100);
  const after = await client(port);
  after.socket.write(post('there'));
  await expect.poll(() => after.bodies()).toEqual(['there']);
});

test('a client that never reads gets no more answers made than its buffers take', async () => {
  const { port, answers } = await start();
  const { socket } = await client(port);
  socket.pause();
  const request = post('x'.repeat(30_000));
  const sent = 2000;
  for (let i = 0; i < sent; i++) socket.write(request);
  let before = -1;
  while (answers() > before) {
    before = answers();
    await sleep(300);
  }
  expect(answers()).toBeLessThan(sent / 2);
  socket.resume();
  await expect.poll(() => answers(), { timeout: 10_000 }).toBe(sent);
});

test('a value that no header can have is not sent', async () => {
  const { port } = await start();
  const { socket, closed, received } = await client(port);
  socket.write(post('a\r\nx-admin: yes', { path: '/plain/echoed-in-a-header' }));
  await closed;
  expect(received()).toBe('');
});

test('while it drains, what is on its way is answered and what is idle ends', async () => {
  const { http, port } = await start();
  const idle = await client(port);
  idle.socket.write(post('1'));
  await expect.poll(() => idle.bodies()).toEqual(['1']);
  const fresh = await client(port);
  const busy = await client(port);
  busy.socket.write(post('2', { path: '/plain/300' }));
  await sleep(20);
  const closing = http.close();
  await Promise.all([idle.closed, fresh.closed, busy.closed, closing]);
  expect(busy.bodies()).toEqual(['2']);
  expect(busy.received()).toMatch(/\r\nConnection: close\r\n/);
});

interface Alone {
  port: number;
  open: PlainConnection[];
  /** In the order in which they came, and those that were given to node:http. */
  served: Socket[];
  given: Socket[];
}

/** Connections that nobody looks at but the test, and that node:http never gets. */
async function startAlone(): Promise<Alone> {
  const [open, served, given]: [PlainConnection[], Socket[], Socket[]] = [[], [], []];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    served.push(socket);
    open.push(
      openPlainConnection(socket, {
        prefix: '/plain',
        take: (_request, exchange) => {
          exchange.respond(200, [], 'taken');
          return true;
        },
        serveOtherwise: (other) => given.push(other),
        onGone: () => {},
        isDraining: () => false,
        keepAliveMs: 5000,
      }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of served) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, open, served, given };
}

test('what is not below the prefix is given to node:http before its body has come', async () => {
  const { port, given } = await startAlone();
  const { socket } = await client(port);
  socket.write(post('body', { path: '/other' }).slice(0, -4));
  await expect.poll(() => given.length).toBe(1);
});

test('one that stays idle for too long ends, and one whose client is slow is given away', async () => {
  const { port, open, served, given } = await startAlone();
  const [idle, silent] = [await client(port, true), await client(port)];
  idle.socket.write(post('1'));
  await expect.poll(() => idle.bodies()).toEqual(['taken']);
  const lookAll = (laterMs: number): void => {
    for (const connection of open) connection.look(performance.now() + laterMs);
  };
  lookAll(500);
  expect(given).toEqual([]);
  lookAll(2000);
  expect(given.map(({ remotePort }) => remotePort)).toEqual([silent.socket.localPort]);
  lookAll(4000);
  idle.socket.write(post('2'));
  await expect.poll(() => idle.bodies()).toEqual(['taken', 'taken']);
  lookAll(6000);
  await expect.poll(() => served[0]!.destroyed).toBe(true);
});

test('nothing that comes after our end is done, and no client can keep a connection that is to end', async () => {
  const { http, port, answers } = await start();
  const sockets = new Set<Socket>();
  http.server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  const [used, fresh, busy] = await Promise.all([1, 2, 3].map(() => client(port, true)));
  used!.socket.write(post('1'));
  busy!.socket.write(post('2', { path: '/plain/300' }));
  await expect.poll(() => used!.bodies()).toEqual(['1']);
  expect(sockets.size).toBe(3);
  const ends = [used!, fresh!, busy!].map(
    ({ socket }) => new Promise((resolve) => socket.once('end', resolve)),
  );
  const closing = http.close();
  await Promise.all(ends);
  for (const { socket } of [used!, fresh!, busy!]) socket.write(post('too late'));
  await closing;
  expect(sockets.size).toBe(0);
  expect(answers()).toBe(2);
});
