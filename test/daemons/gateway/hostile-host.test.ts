import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type CommandResult, listHosts, pluginPackage } from '../../../src/contracts/index.ts';
import { answerChallenge } from '../../../src/kit/security/host-proof.ts';
import { TEST_KEYS } from '../../support/daemon.ts';
import { ADMIN_TOKEN, startGateway, type TestGateway } from '../../support/gateway.ts';
import { connectHost, connectRaw, type RawAgent, registerTestHost } from '../../support/host-agent.ts';

/** A registered host whose owner writes the frames by hand. */
const PROJECT = join(import.meta.dirname, '../../fixtures/projects/hosts');
const start = (plugin: Record<string, unknown> = {}) =>
  startGateway({
    projectDir: PROJECT,
    config: { execution: { plugins: { '@acme/tools': { backend: 'host', ...plugin } } } },
  });

interface DispatchReply {
  result: CommandResult;
  error: { code: string; message: string; details: Record<string, unknown> };
}

async function dispatch(gateway: TestGateway, body: Record<string, unknown> = {}) {
  const response = await gateway.fetch('/internal/dispatch', {
    method: 'POST',
    headers: { 'x-internal-secret': TEST_KEYS.internalSecret, 'content-type': 'application/json' },
    body: JSON.stringify({ plugin: { id: '@acme/tools' }, handler: 'handlers.js#echo', ...body }),
  });
  return { status: response.status, body: (await response.json()) as DispatchReply };
}

const success = (executionId: string, result: unknown = 'mine') => ({
  type: 'result',
  executionId,
  result: { exitCode: 0, result },
});

const linesOf = (gateway: TestGateway, event: string) =>
  gateway.logs.lines.filter((line) => line.event === event);

/** Settles once every frame sent so far is handled: frames are read in order. */
async function settled(agent: RawAgent): Promise<void> {
  agent.send({ type: 'heartbeat', at: 1 });
  await agent.next('ack');
}

describe('executions of others', () => {
  test('results, errors, logs, streams and calls for foreign executions have no effect', async () => {
    const gateway = await start();
    const victim = await connectHost(gateway, ADMIN_TOKEN, { labels: { role: 'victim' } });
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    const answer = dispatch(gateway, { target: { hostId: victim.host.hostId } });
    const { executionId } = await victim.agent.next('execute');

    agent.send(success(executionId, 'forged'));
    agent.send({ type: 'error', executionId, error: { code: 'EXECUTION_ERROR', message: 'forged' } });
    agent.send({ type: 'log', executionId, level: 'error', message: 'forged line' });
    agent.send({ type: 'progress', executionId, state: 'preparing' });
    agent.send({ type: 'stream', executionId, contentType: 'text/plain' });
    agent.send({ type: 'chunk', executionId, data: 'AAAA' });
    agent.send({ type: 'call', callId: 1, executionId, service: 'state', method: 'get', args: ['x'] });
    expect(await agent.next('reply')).toMatchObject({
      outcome: { ok: false, error: { code: 'EXECUTION_ERROR' } },
    });
    await settled(agent);

    victim.agent.send(success(executionId, 'true'));
    expect((await answer).body.result).toEqual({ exitCode: 0, result: 'true' });
    expect(gateway.logs.lines.some(({ message }) => message === 'forged line')).toBe(false);
    expect(linesOf(gateway, 'host.unknown_execution')).toHaveLength(2);
  });

  test('names of Object.prototype members are no executions, services or methods', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    const answer = dispatch(gateway);
    const { executionId } = await agent.next('execute');
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty'];
    let callId = 0;
    for (const name of names) {
      agent.send(success(name));
      agent.send({ type: 'progress', executionId: name, state: 'running' });
      for (const [service, method] of [
        [name, name],
        [name, 'get'],
        ['state', name],
      ])
        agent.send({ type: 'call', callId: ++callId, executionId, service, method, args: [] });
    }
    for (let answered = 0; answered < callId; answered++)
      expect((await agent.next('reply')).outcome).toMatchObject({
        ok: false,
        error: { code: 'NOT_IMPLEMENTED' },
      });
    const poisoned = `{"type":"result","executionId":${JSON.stringify(executionId)},"result":{"exitCode":0,"result":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}}`;
    agent.send(poisoned);
    const { result } = (await answer).body;
    expect(Object.hasOwn(result.result as object, '__proto__')).toBe(false);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  test('a result counts once, and not after the end of its execution', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    const answer = dispatch(gateway);
    const { executionId } = await agent.next('execute');
    agent.send(success(executionId, 'first'));
    agent.send(success(executionId, 'second'));
    agent.send({ type: 'error', executionId, error: { code: 'EXECUTION_ERROR', message: 'third' } });
    agent.send({ type: 'call', callId: 1, executionId, service: 'state', method: 'increment', args: ['x'] });
    expect((await agent.next('reply')).outcome).toMatchObject({
      error: { message: 'The execution has ended.' },
    });
    expect((await answer).body.result.result).toBe('first');
    expect(linesOf(gateway, 'host.late_result')).toHaveLength(2);

    // An id that ended is not given again to the host that may have kept frames for it.
    const again = await dispatch(gateway, { executionId });
    expect(again.status).toBe(409);
  });

  test('an answer after a cancel is dropped', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    const answer = dispatch(gateway, { timeoutMs: 1000 });
    const { executionId } = await agent.next('execute');
    gateway.clock.advance(3001);
    expect((await answer).body.error.code).toBe('EXECUTION_TIMEOUT');
    await agent.next('cancel');
    agent.send(success(executionId));
    await settled(agent);
    expect(linesOf(gateway, 'host.late_result')).toHaveLength(1);
  });

  test('a flood of answers to unknown executions fills neither log nor memory', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    for (let n = 0; n < 2000; n++) agent.send(success(`made-up-${n}`));
    await settled(agent);
    expect(linesOf(gateway, 'host.unknown_execution')).toHaveLength(20);
    gateway.clock.advance(1000);
    agent.send(success('one-more'));
    await settled(agent);
    expect(linesOf(gateway, 'host.unknown_execution').at(-1)).toMatchObject({
      evidence: { unreported: 1980 },
    });
  });
});

describe('permissions of an execution', () => {
  test('come from its manifest, whatever the agent requests', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    const answer = dispatch(gateway);
    const { executionId } = await agent.next('execute');
    const calls: Array<[service: string, method: string, args: unknown[]]> = [
      ['storage', 'read', ['a-key']],
      ['llm', 'complete', [{ messages: [] }]],
      ['embeddings', 'embed', [['text']]],
      ['vectorStore', 'search', ['c', { vector: [1] }]],
      ['workflows', 'start', [{ workflowId: 'any' }]],
      ['jobs', 'submit', [{ handler: '@acme/other/job' }]],
      ['webhooks', 'list', []],
      ['invoke', 'run', ['@acme/tools/echo', {}]],
      ['fetch', 'request', [{ url: 'http://169.254.169.254/', method: 'GET', headers: [], body: null }]],
    ];
    const offered = (await connectHost(gateway, ADMIN_TOKEN)).agent.frames.find(
      ({ type }) => type === 'welcome',
    );
    expect(offered).toBeDefined();
    for (const [index, [service, method, args]] of calls.entries())
      agent.send({ type: 'call', callId: index, executionId, service, method, args });
    const codes = new Map<number, string>();
    while (codes.size < calls.length) {
      const { callId, outcome } = await agent.next('reply');
      codes.set(callId, outcome.ok ? 'ok' : outcome.error.code);
    }
    const refused = new Set(['PERMISSION_DENIED', 'NOT_IMPLEMENTED']);
    expect([...codes].filter(([, code]) => !refused.has(code))).toEqual([]);
    expect(codes.get(0)).toBe('PERMISSION_DENIED');
    agent.send(success(executionId));
    await answer;
  });

  test('an agent can neither speak for the platform nor send results of another shape', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    const outcomes: Array<[status: number, code: string | undefined]> = [];
    const answers: Array<(executionId: string) => Record<string, unknown>> = [
      ...['UNAUTHORIZED', 'FORBIDDEN', 'QUOTA_EXCEEDED', 'STORE_ERROR', '__proto__'].map(
        (code) => (executionId: string) => ({ type: 'error', executionId, error: { code, message: 'x' } }),
      ),
      ...[undefined, null, 'text', [], { exitCode: '0' }, { exitCode: 0.5 }, { exitCode: 1, error: 'x' }].map(
        (result) => (executionId: string) => ({ type: 'result', executionId, result }),
      ),
    ];
    for (const frameOf of answers) {
      const answer = dispatch(gateway);
      agent.send(frameOf((await agent.next('execute')).executionId));
      const { status, body } = await answer;
      outcomes.push([status, body.error?.code]);
    }
    expect(outcomes).toEqual(answers.map(() => [500, 'EXECUTION_ERROR']));
  });

  test('error details are limited to a size that callers accept', async () => {
    const gateway = await start();
    const { agent, host } = await connectHost(gateway, ADMIN_TOKEN);
    const report = async (details: Record<string, unknown>) => {
      const answer = dispatch(gateway);
      const { executionId } = await agent.next('execute');
      agent.send({ type: 'error', executionId, error: { code: 'VALIDATION_ERROR', message: 'x', details } });
      return (await answer).body.error.details;
    };
    const { hostId } = host;
    expect(await report({ field: 'a', hostId: 'forged' })).toEqual({ field: 'a', hostId });
    const large = { text: 'x'.repeat(200_000) };
    expect(await report(large)).toEqual({ truncated: true, bytes: JSON.stringify(large).length, hostId });
  });

  test('the sixty-fifth concurrent platform call is refused', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    const answer = dispatch(gateway);
    const { executionId } = await agent.next('execute');
    for (let callId = 0; callId < 200; callId++)
      agent.send({ type: 'call', callId, executionId, service: 'state', method: 'get', args: ['x'] });
    const codes: string[] = [];
    for (let n = 0; n < 200; n++) {
      const { outcome } = await agent.next('reply');
      codes.push(outcome.ok ? 'ok' : outcome.error.code);
    }
    expect(codes).toContain('SERVICE_UNAVAILABLE');
    agent.send(success(executionId));
    expect((await answer).status).toBe(200);
  });
});

describe('who a host is', () => {
  test('capabilities, plugins, labels and namespaces claimed in hello are ignored', async () => {
    const gateway = await start();
    const host = await registerTestHost(gateway, ADMIN_TOKEN);
    const agent = connectRaw(gateway, await host.token(), host);
    await agent.hello({
      capabilities: ['gpu'],
      labels: { zone: 'eu' },
      namespaceId: 'other',
      hostId: 'host_other',
      plugins: [{ id: '@acme/tools', version: '1.2.0', integrity: 'sha512-forged' }],
    });
    const [seen] = (await gateway.call(listHosts, {})).items;
    expect(seen).toMatchObject({ hostId: host.hostId, namespaceId: 'default', capabilities: [], labels: {} });
    for (const target of [{ capability: 'gpu' }, { labels: { zone: 'eu' } }, { hostId: 'host_other' }])
      expect((await dispatch(gateway, { target })).body.error.code).toBe('HOST_UNAVAILABLE');
    expect((await dispatch(gateway, { tenantId: 'other' })).body.error.code).toBe('HOST_UNAVAILABLE');

    const answer = dispatch(gateway);
    const { executionId, request } = await agent.next('execute');
    expect(request.plugin.integrity).not.toBe('sha512-forged');
    agent.send(success(executionId));
    expect((await answer).status).toBe(200);
  });

  test('a recorded hello opens no other session, and a session accepts one hello', async () => {
    const gateway = await start();
    const host = await registerTestHost(gateway, ADMIN_TOKEN);
    const first = connectRaw(gateway, await host.token(), host);
    const proof = answerChallenge(await first.next('challenge'), host.keys, host.hostId);
    const hello = { type: 'hello', protocol: 1, agentVersion: '1', proof };
    first.send(hello);
    await first.next('welcome');
    const replayed = connectRaw(gateway, await host.token());
    await replayed.next('challenge');
    replayed.send(hello);
    expect((await replayed.closed).code).toBe(4401);
    first.send(hello);
    expect((await first.closed).code).toBe(1008);
  });

  test('a host fetches only the plugins that it may run', async () => {
    const gateway = await start({ hostId: 'host_somebody-else' });
    const { host } = await connectHost(gateway, ADMIN_TOKEN);
    const token = await host.token();
    const fetchPlugin = (pluginId: string) =>
      gateway.call(pluginPackage, { params: { pluginId: pluginId as never } }, token);
    for (const id of ['@acme/tools', '@acme/none', '__proto__'])
      await expect(fetchPlugin(id)).rejects.toMatchObject({ status: expect.any(Number) });
  });
});

describe('invalid bytes', () => {
  const deep = (depth: number) => `{"type":"heartbeat","at":1,"x":${'['.repeat(depth)}${']'.repeat(depth)}}`;
  `{"type":"heartbeat","at":1,"x":{${Array.from({ length: 60_000 }, (_, n) => `"k${n}":0`)}}}`;
  test.each<[what: string, text: () => string, code: number]>([
    ['no JSON', () => '{"type":', 1007],
    ['an array', () => '[]', 1007],
    ['null', () => 'null', 1007],
    ['a number', () => '1e999', 1007],
    ['a type that is an object', () => '{"type":{}}', 1007],
    ['a result without an execution', () => '{"type":"result"}', 1007],
    [
      'a call id that is no integer',
      () => '{"type":"call","callId":1.5,"executionId":"e","service":"s","method":"m","args":[]}',
      1007,
    ],
    ['a chunk that is no base64', () => '{"type":"chunk","executionId":"e","data":"%%"}', 1007],
    ['nesting without end', () => deep(5000), 1007],
    ['a message of more than a megabyte', () => `{"type":"log","message":"${'x'.repeat(1_100_000)}"}`, 1009],
    ['a part from the middle', () => '{"type":"part","frame":1,"index":3,"last":false,"text":"x"}', 1008],
  ])('%s closes the socket with its code', async (_what, text, code) => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    agent.send(text());
    expect((await agent.closed).code).toBe(code);
    // And it alone: the next one works.
    const { agent: next } = await connectHost(gateway, ADMIN_TOKEN);
    const answer = dispatch(gateway);
    next.send(success((await next.next('execute')).executionId));
    expect((await answer).status).toBe(200);
  });

  test('log lines are cut to size and to a rate', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    const answer = dispatch(gateway);
    const { executionId } = await agent.next('execute');
    const meta = { large: 'y'.repeat(200_000) };
    agent.send({ type: 'log', executionId, level: '__proto__', message: 'x'.repeat(200_000), meta });
    for (let n = 0; n < 2000; n++)
      agent.send({ type: 'log', executionId, level: 'info', message: `flood ${n}` });
    agent.send(success(executionId));
    await answer;
    const lines = gateway.logs.lines.filter(({ logsSource }) => logsSource === 'plugin');
    expect(lines.length).toBeLessThanOrEqual(800);
    expect(lines[0]).toMatchObject({ level: 'info', pluginId: '@acme/tools', tenantId: 'default' });
    expect(JSON.stringify(lines[0]).length).toBeLessThan(10_000);
  });
});
