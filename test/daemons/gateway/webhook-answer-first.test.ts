import { createHmac } from 'node:crypto';
import { connect, Socket } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { handlerRuns, provision, startGateway } from '../../support/gateway.ts';
import { eventually } from '../../support/webhook-senders.ts';

const HEAD = 'HTTP/1.1\r\nHost: a\r\nX-Svc-Namespace: default\r\n';

/** The bytes of a signed delivery: read off its socket by the gateway itself, or, chunked, by node:http. */
function requestOf(event: string, secret: string, payload: object, { chunked = false } = {}): string {
  const body = JSON.stringify(payload);
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  const framed = chunked
    ? `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
    : `Content-Length: ${body.length}\r\n\r\n${body}`;
  return `POST /webhooks/%40acme%2Forders/${event} ${HEAD}X-Signature: sha256=${signature}\r\n${framed}`;
}

/** What this process writes, in order: answers to senders, and executions to plugin processes by the `n` of their payload. */
function watchWrites(): string[] {
  const written: string[] = [];
  const { write } = Socket.prototype;
  const spy = vi.spyOn(Socket.prototype, 'write').mockImplementation(function (
    this: Socket,
    ...args: unknown[]
  ) {
    const text = String(args[0]);
    const status = /^HTTP\/1\.1 (\d+)/.exec(text)?.[1];
    if (status) written.push(status);
    const run = /"type":"execute".*?"input":\{"n":(\d+)/.exec(text)?.[1];
    if (run) written.push(`run ${run}`);
    return Reflect.apply(write, this, args) as boolean;
  });
  onTestFinished(() => spy.mockRestore());
  return written;
}

function openConnection(port: number): Socket {
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  return socket;
}

test.each([
  { way: 'as a plain request', chunked: false },
  { way: 'by node:http', chunked: true },
])('a 202 is written before the handler starts, where the delivery is read $way', async ({ chunked }) => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'later');
  const socket = openConnection(gateway.port);
  const written = watchWrites();
  for (let n = 0; n < 3; n++) {
    socket.write(requestOf('later', secret, { n }, { chunked }));
    await eventually(() => expect(handlerRuns(gateway)).toBe(n + 1));
  }
  expect(written).toEqual(['202', 'run 0', '202', 'run 1', '202', 'run 2']);
});

test('a 202 queued behind a slow answer of its connection delays only its own handler', async () => {
  const gateway = await startGateway();
  const slow = await provision(gateway, 'created');
  const secret = await provision(gateway, 'later');
  const written = watchWrites();
  const pipelining = openConnection(gateway.port);
  pipelining.write(requestOf('created', slow, { n: 0, sleepMs: 4000 }, { chunked: true }));
  // As many as there are slots for async deliveries, and more.
  for (let n = 1; n <= 20; n++) pipelining.write(requestOf('later', secret, { n }, { chunked: true }));
  await eventually(() => expect(written).toContain('run 0'));
  openConnection(gateway.port).write(requestOf('later', secret, { n: 100 }));
  await eventually(() => expect(handlerRuns(gateway)).toBe(22));
  expect(written.slice(0, 4)).toEqual(['run 0', '202', 'run 100', '200']);
  expect(written.filter((entry) => entry === '202')).toHaveLength(21);
});

test('a delivery whose sender disconnects before its 202 still runs', async () => {
  const gateway = await startGateway();
  const slow = await provision(gateway, 'created');
  const secret = await provision(gateway, 'later');
  const socket = openConnection(gateway.port);
  socket.write(requestOf('created', slow, { n: 0, sleepMs: 500 }, { chunked: true }));
  socket.write(requestOf('later', secret, { n: 1 }, { chunked: true }));
  await eventually(() => expect(gateway.logs.lines.some(isRunOf(0))).toBe(true));
  socket.destroy();
  await eventually(() => expect(gateway.logs.lines.some(isRunOf(1))).toBe(true));
});

const isRunOf = (run: number) => (line: Record<string, unknown>) =>
  line.message === 'handled' && (line.meta as { run?: unknown }).run === run;
