import { describe, expect, test } from 'vitest';
import { HOST_CLOSE, HOST_SOCKET, type PartFrame } from '../../../src/contracts/index.ts';
import type { GatewayServices } from '../../../src/daemons/gateway/services.ts';
import { seconds } from '../../../src/kit/time/duration.ts';
import { createFrameJoiner, Outbox } from '../../../src/plugins/index.ts';
import { dispatch, ON_HOSTS, PROJECT } from '../../agent/support.ts';
import { TEST_KEYS } from '../../support/daemon.ts';
import { ADMIN_TOKEN, startGateway, type TestGateway } from '../../support/gateway.ts';
import { connectHost, connectRaw, type RawAgent, registerTestHost } from '../../support/host-agent.ts';

const { partChars, agentFrameBytes, streamWindowBytes } = HOST_SOCKET;
const MEGABYTE = 1024 * 1024;
const FULL = 'x'.repeat(partChars);

async function start() {
  const gateway = await startGateway({ projectDir: PROJECT, config: ON_HOSTS });
  return { gateway, ...(await connectHost(gateway, ADMIN_TOKEN)) };
}

const part = (frame: number, index: number, extra: Partial<PartFrame> = {}): PartFrame => ({
  type: 'part',
  frame,
  index,
  last: false,
  text: FULL,
  ...extra,
});

/** The next frame that comes in parts. */
async function joined<Frame>(agent: RawAgent): Promise<Frame> {
  const joiner = createFrameJoiner(HOST_SOCKET.gatewayFrameBytes);
  for (;;) {
    const outcome = joiner.take(await agent.next('part'));
    if (outcome.kind === 'fault') throw new Error(outcome.why);
    if (outcome.kind === 'whole') return JSON.parse(outcome.text) as Frame;
  }
}

/** As the agent itself sends. */
function sendLong(agent: RawAgent, frame: object, executionId: string): void {
  const { socket } = agent;
  const wire = {
    send: (text: string, onSent: () => void) => socket.send(text, onSent),
    get bufferedBytes() {
      return socket.bufferedAmount;
    },
  };
  new Outbox(wire, agentFrameBytes).send(frame, executionId);
}

/** A dispatch whose caller takes a stream. */
function streaming(gateway: TestGateway, body: object = {}, signal?: AbortSignal): Promise<Response> {
  return fetch(`${gateway.url}/internal/dispatch`, {
    method: 'POST',
    headers: { 'x-internal-secret': TEST_KEYS.internalSecret, 'content-type': 'application/json' },
    body: JSON.stringify({
      plugin: { id: '@acme/tools' },
      handler: 'handlers.js#echo',
      streams: true,
      ...body,
    }),
    ...(signal ? { signal } : {}),
  });
}

describe('a frame in parts', () => {
  test('brings large inputs and results across', async () => {
    const { gateway, agent } = await start();
    const input = 'ä"'.repeat(MEGABYTE);
    const answer = dispatch(gateway, 'echo', { input });
    const { executionId, request } = await joined<{ executionId: string; request: { input: string } }>(agent);
    expect(request.input === input).toBe(true);
    sendLong(agent, { type: 'result', executionId, result: { exitCode: 0, result: input } }, executionId);
    expect((await answer).body.result.result === input).toBe(true);
  });

  test('does not delay short frames, and its remainder is not sent after the receiver leaves', async () => {
    const { gateway, agent } = await start();
    const leaving = new AbortController();
    agent.socket.pause();
    const call = streaming(gateway, { input: 'x'.repeat(30 * MEGABYTE) }, leaving.signal).catch(() => 'left');
    const { hostSessions } = gateway.services as GatewayServices;
    await expect.poll(() => hostSessions.running).toBe(1);
    agent.send({ type: 'heartbeat', at: 7 });
    leaving.abort();
    await call;
    agent.socket.resume();
    expect(await agent.next('ack')).toMatchObject({ at: 7 });
    const { frame } = await agent.next('drop');
    await agent.next('cancel');
    const parts = agent.frames.filter(({ type }) => type === 'part');
    expect(parts.length).toBeLessThan((30 * MEGABYTE) / partChars);
    expect(parts.every((one) => one.type === 'part' && one.frame === frame)).toBe(true);
    const next = dispatch(gateway, 'echo', { input: 1 });
    const { executionId } = await agent.next('execute');
    agent.send({ type: 'result', executionId, result: { exitCode: 0, result: 2 } });
    expect((await next).body.result.result).toBe(2);
  });

  test.each([
    ['out of order', [part(0, 0), part(0, 2)], HOST_CLOSE.protocol],
    ['of two frames at a time', [part(0, 0), part(1, 0)], HOST_CLOSE.protocol],
    ['that are short', [part(0, 0, { text: 'x' })], HOST_CLOSE.protocol],
    ['that are longer than they may be', [part(0, 0, { text: `${FULL}x` })], HOST_CLOSE.malformed],
    ['that make no frame', [part(0, 0, { text: '{oops', last: true })], HOST_CLOSE.malformed],
    [
      'that make a part',
      [part(0, 0, { text: JSON.stringify(part(1, 0, { text: '{}', last: true })), last: true })],
      HOST_CLOSE.malformed,
    ],
    [
      'without end',
      Array.from({ length: agentFrameBytes / partChars + 1 }, (_, index) => part(0, index)),
      HOST_CLOSE.tooLarge,
    ],
  ])('parts %s close the socket', async (_what, parts, code) => {
    const { agent } = await start();
    // The first of them may be longer than the text of a part: that is the point of one of these.
    for (const one of parts) agent.send(one as never);
    expect((await agent.closed).code).toBe(code);
  });

  test('that stalls closes the socket after three beats, although the agent keeps beating', async () => {
    const { gateway, agent } = await start();
    agent.send(part(0, 0));
    agent.send({ type: 'heartbeat', at: 0 });
    await agent.next('ack');
    for (let at = 1; at <= 4; at++) {
      gateway.clock.advance(seconds(15));
      if (at < 3) {
        agent.send({ type: 'heartbeat', at });
        await agent.next('ack');
      }
    }
    expect(await agent.closed).toMatchObject({
      code: HOST_CLOSE.silent,
      reason: 'the rest of a frame did not arrive',
    });
  });

  test('before hello closes the socket: hello must come first and in one frame', async () => {
    const gateway = await startGateway({ projectDir: PROJECT, config: ON_HOSTS });
    const host = await registerTestHost(gateway, ADMIN_TOKEN);
    const agent = connectRaw(gateway, await host.token(), host);
    await agent.next('challenge');
    agent.send(part(0, 0));
    expect((await agent.closed).code).toBe(HOST_CLOSE.protocol);
  });

  test('of a result is awaited, although the handler has used its whole timeout', async () => {
    const { gateway, agent } = await start();
    const answer = dispatch(gateway, 'echo', { timeoutMs: 1000 });
    const { executionId } = await agent.next('execute');
    gateway.clock.advance(2500);
    const text = JSON.stringify({
      type: 'result',
      executionId,
      result: { exitCode: 0, result: FULL },
    });
    agent.send(part(0, 0, { executionId, text: text.slice(0, partChars) }));
    agent.send({ type: 'heartbeat', at: 1 });
    await agent.next('ack');
    gateway.clock.advance(seconds(20));
    agent.send(part(0, 1, { executionId, text: text.slice(partChars), last: true }));
    expect((await answer).body.result.result).toBe(FULL);
  });
});

describe('a stream', () => {
  const chunk = (executionId: string, bytes: number) => ({
    type: 'chunk',
    executionId,
    data: Buffer.alloc(bytes, 1).toString('base64'),
  });

  test('is sent on demand, under its own content type', async () => {
    const { gateway, agent } = await start();
    const answer = streaming(gateway);
    const { executionId, streams } = await agent.next('execute');
    expect(streams).toBe(true);
    agent.send({ type: 'stream', executionId, contentType: 'text/x-test' });
    expect(await agent.next('pull')).toMatchObject({ executionId, bytes: streamWindowBytes });
    agent.send(chunk(executionId, 1000));
    expect(await agent.next('pull')).toMatchObject({ executionId, bytes: 1000 });
    agent.send({ type: 'result', executionId, result: { exitCode: 0 } });
    const reply = await answer;
    expect([reply.status, reply.headers.get('content-type'), reply.headers.get('x-svc-stream')]).toEqual([
      200,
      'text/x-test',
      executionId,
    ]);
    expect((await reply.arrayBuffer()).byteLength).toBe(1000);
  });

  test('a stalled reader causes no further demand, and one that leaves cancels', async () => {
    const { gateway, agent } = await start();
    const leaving = new AbortController();
    const answer = streaming(gateway, {}, leaving.signal);
    const { executionId } = await agent.next('execute');
    agent.send({ type: 'stream', executionId, contentType: 'text/plain' });
    let credit = 0;
    const pulls = () => agent.frames.flatMap((frame) => (frame.type === 'pull' ? [frame.bytes] : []));
    const reply = await answer;
    // Until the window and every buffer on the way are full.
    for (let sent = 0, quiet = 0; quiet < 20; ) {
      credit = pulls().reduce((sum, bytes) => sum + bytes, 0) - sent;
      if (credit >= 100_000) {
        agent.send(chunk(executionId, 100_000));
        sent += 100_000;
        quiet = 0;
      } else quiet++;
      await new Promise((resolve) => setTimeout(resolve, 10));
      expect(sent).toBeLessThan(64 * MEGABYTE);
    }
    leaving.abort();
    await expect(reply.text()).rejects.toThrow();
    expect(await agent.next('cancel')).toMatchObject({ executionId });
  });

  test.each([
    ['more than was pulled', [chunk('', streamWindowBytes + 1)]],
    ['an empty piece', [chunk('', 0)]],
    ['a second beginning', [{ type: 'stream', contentType: 'text/plain' }]],
  ])('%s closes the socket with 1008', async (_what, frames) => {
    const { gateway, agent } = await start();
    const answer = streaming(gateway).then((reply) => reply.text());
    answer.catch(() => {});
    const { executionId } = await agent.next('execute');
    agent.send({ type: 'stream', executionId, contentType: 'text/plain' });
    await agent.next('pull');
    for (const frame of frames) sendLong(agent, { ...frame, executionId }, executionId);
    expect((await agent.closed).code).toBe(HOST_CLOSE.protocol);
    await expect(answer).rejects.toThrow();
  });

  test.each([
    ['that nobody asked for', false, 'text/plain'],
    ['with a header in its type', true, 'text/plain\r\nset-cookie: a=b'],
  ])('%s closes the socket with 1008', async (_what, asked, contentType) => {
    const { gateway, agent } = await start();
    const answer = asked ? streaming(gateway) : dispatch(gateway, 'echo');
    const { executionId } = await agent.next('execute');
    agent.send({ type: 'stream', executionId, contentType });
    expect((await agent.closed).code).toBe(HOST_CLOSE.protocol);
    expect((await answer).status).toBe(503);
  });

  test('pieces without a beginning close the socket; those of an ended stream are dropped', async () => {
    const { gateway, agent } = await start();
    const first = dispatch(gateway, 'echo');
    const { executionId } = await agent.next('execute');
    agent.send({ type: 'result', executionId, result: { exitCode: 0 } });
    await first;
    agent.send(chunk(executionId, 10));
    agent.send({ type: 'heartbeat', at: 1 });
    await agent.next('ack');
    const second = dispatch(gateway, 'echo');
    const next = await agent.next('execute');
    agent.send(chunk(next.executionId, 10));
    expect((await agent.closed).code).toBe(HOST_CLOSE.protocol);
    expect((await second).body.error.code).toBe('HOST_UNAVAILABLE');
  });
});
