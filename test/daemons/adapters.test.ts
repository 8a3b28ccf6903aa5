import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../src/contracts/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { state } from '../../src/daemons/state/index.ts';
import { startTestDaemon, tempDir } from '../support/daemon.ts';
import { LIBRARY_PROJECT } from '../support/library.ts';
import { completion, startModelServer, streamOf } from '../support/openai-server.ts';
import { S3_CREDENTIALS, startS3Server } from '../support/s3-server.ts';
import { startMarketplace } from './marketplace/support.ts';
import { send, startRest, type TestRest } from './rest/support.ts';

const KEY = 'sk-test-0123456789-abcdefghij';
const variable = (name: string): string => ['$', `{${name}}`].join('');
const ENV = { KEY, S3_ID: S3_CREDENTIALS.accessKeyId, S3_KEY: S3_CREDENTIALS.secretAccessKey };

type Step = [service: string, method: string, ...args: unknown[]];

/** The real REST and state services with the fixture's plugin in its sandbox. */
async function start(
  adapters: object = {},
  env: Record<string, string> = ENV,
  projectDir: string = LIBRARY_PROJECT,
) {
  const config = { adapters };
  const keeper = await startTestDaemon(state, { config, env });
  const peers = createPeers({ state: keeper.url });
  const rest = await startRest({ projectDir, peers, config, env });
  return { rest, keeper };
}

async function call(
  rest: TestRest,
  steps: Step[],
  { tenant = 'default', failing }: { tenant?: string; failing?: 'thrown' } = {},
) {
  return send(rest, 'POST', '/api/v1/plugins/library/call', {
    body: { steps, ...(failing ? { failing } : {}) },
    headers: { 'x-tenant-id': tenant },
  });
}

/** What the one service that tells of plugins warns of at its start; the others say it at `debug`. */
async function warnings(adapters: object) {
  const { logs } = await startMarketplace({ projectDir: LIBRARY_PROJECT, config: { adapters }, env: ENV });
  return logs.lines.filter(({ reasonCode }) => reasonCode === 'ADAPTER_NOT_CONFIGURED');
}

/** What each step answered. */
async function answers(rest: TestRest, steps: Step[], options?: { tenant?: string }): Promise<never[]> {
  const { status, body } = await call(rest, steps, options);
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body;
}

async function projectWithoutPermissions(): Promise<string> {
  const folder = await tempDir();
  await cp(LIBRARY_PROJECT, folder, { recursive: true });
  const file = join(folder, 'plugins/library/svc.plugin.json');
  const { permissions: _, ...manifest } = JSON.parse(await readFile(file, 'utf8'));
  await writeFile(file, JSON.stringify(manifest));
  return folder;
}

const eventsOf = (rest: TestRest, type: string) =>
  rest.logs.lines.filter((line) => line.schema === 'svc.v1' && line.type === type);

describe('ctx.storage', () => {
  test('bytes and texts are stored, listed, inspected and deleted', async () => {
    const { rest } = await start();
    expect(
      await answers(rest, [
        ['storage', 'write', 'a/text', 'grüße'],
        ['storage', 'write', 'a/bytes', [0, 255, 128]],
        ['storage', 'read', 'a/text'],
        ['storage', 'read', 'a/bytes'],
        ['storage', 'read', 'absent'],
        ['storage', 'exists', 'a/text'],
        ['storage', 'exists', 'absent'],
        ['storage', 'stat', 'a/bytes'],
        ['storage', 'list', { prefix: 'a/', limit: 1 }],
        ['storage', 'list', { prefix: 'a/', limit: 1, cursor: 'a/bytes' }],
        ['storage', 'delete', 'a/text'],
        ['storage', 'delete', 'a/text'],
      ]),
    ).toEqual([
      null,
      null,
      { bytes: [...Buffer.from('grüße')] },
      { bytes: [0, 255, 128] },
      null,
      true,
      false,
      { key: 'a/bytes', bytes: 3, modifiedAt: expect.any(Number) },
      { items: [expect.objectContaining({ key: 'a/bytes' })], nextCursor: 'a/bytes' },
      { items: [expect.objectContaining({ key: 'a/text' })], nextCursor: null },
      true,
      false,
    ]);
  });

  test('a tenant sees only its own keys, and no key escapes its folder', async () => {
    const { rest } = await start();
    await answers(rest, [['storage', 'write', 'key', 'acme']], { tenant: 'acme' });
    expect(await answers(rest, [['storage', 'read', 'key']], { tenant: 'other' })).toEqual([null]);
    const keys = ['../key', '/etc/passwd', 'a/../../key', 'a\\b', ''];
    const refused = await answers(
      rest,
      keys.map((key): Step => ['storage', 'read', key]),
    );
    for (const answer of refused) expect(answer).toMatchObject({ code: 'VALIDATION_ERROR' });
  });

  test('limits of an object and of a plugin', async () => {
    const storage = { type: 'files', maxObjectBytes: 10, quotaBytes: 15 };
    const { rest } = await start({ storage });
    const [, tooLarge, beyond] = await answers(rest, [
      ['storage', 'write', 'a', 'ten bytes.'],
      ['storage', 'write', 'b', 'eleven byte'],
      ['storage', 'write', 'b', 'six by'],
    ]);
    expect(tooLarge).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', details: { bytes: 11, maxBytes: 10 } });
    expect(beyond).toMatchObject({ code: 'QUOTA_EXCEEDED' });
  });

  test('the largest object passes the runner and the services whole', async () => {
    const { rest } = await start();
    const size = LIMITS.storageObjectBytes;
    const [written, stat, more] = await answers(rest, [
      ['storage', 'fill', 'large', size],
      ['storage', 'stat', 'large'],
      ['storage', 'fill', 'larger', size + 1],
    ]);
    expect([written, stat, more]).toEqual([
      null,
      expect.objectContaining({ bytes: size }),
      expect.objectContaining({ code: 'PAYLOAD_TOO_LARGE' }),
    ]);
  });

  test('objects of a bucket, with keys from the environment that appear in no log', async () => {
    const s3 = await startS3Server();
    const storage = {
      type: 's3',
      bucket: s3.bucket,
      endpoint: s3.endpoint,
      pathStyle: true,
      accessKeyId: variable('S3_ID'),
      secretAccessKey: variable('S3_KEY'),
    };
    const { rest, keeper } = await start({ storage });
    expect(
      await answers(rest, [
        ['storage', 'write', 'k', 'v'],
        ['storage', 'exists', 'k'],
      ]),
    ).toEqual([null, true]);
    expect([...s3.objects.keys()]).toEqual(['default/plugin%3Alibrary/k']);
    s3.fail(403, 403, 403);
    expect(await answers(rest, [['storage', 'read', 'k']])).toEqual([
      expect.objectContaining({ code: 'UPSTREAM_UNAVAILABLE' }),
    ]);
    const written = JSON.stringify([rest.logs.lines, keeper.logs.lines]);
    expect(written).not.toContain(S3_CREDENTIALS.secretAccessKey);
  });
});

describe('ctx.llm and ctx.embeddings', () => {
  async function withModel() {
    const server = await startModelServer();
    const llm = {
      baseUrl: server.baseUrl,
      apiKey: variable('KEY'),
      models: { default: 'test-model' },
      prices: { 'test-model': { inputPerMillion: 2, outputPerMillion: 10 } },
      maxAttempts: 1,
    };
    const embeddings = { baseUrl: server.baseUrl, apiKey: variable('KEY'), model: 'test-embedder' };
    return { server, ...(await start({ llm, embeddings })) };
  }

  test('a handler in its sandbox makes each kind of call', async () => {
    const { rest, server } = await withModel();
    const tool = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } };
    const whole = {
      model: 'test-model-2030-01-01',
      tier: 'default',
      usage: { totalTokens: 20 },
      cost: 0.000104,
    };
    const steps: Step[] = [
      ['llm', 'complete', 'hello'],
      ['llm', 'chat', [{ role: 'user', content: 'hi' }], { temperature: 0 }],
      [
        'llm',
        'chatWithTools',
        [{ role: 'user', content: 'hi' }],
        { tools: [{ name: 'look', parameters: {} }] },
      ],
      ['llm', 'stream', 'hello'],
      ['embeddings', 'embed', ['one', 'three']],
    ];
    const said = (text: string) => ({ json: completion({ content: text }) });
    server.next(said('first'), said('second'), { json: completion({ content: null, tool_calls: [tool] }) });
    const [completed, chatted, tools, stream, vectors] = await answers(rest, steps);
    expect(completed).toMatchObject({ ...whole, text: 'first' });
    expect(chatted).toMatchObject({ ...whole, text: 'second' });
    expect(tools).toMatchObject({ ...whole, toolCalls: [{ id: 'call_1', name: 'look', arguments: {} }] });
    expect(stream).toEqual([
      { text: 'you ' },
      { text: 'said' },
      { text: '', reply: expect.objectContaining({ text: 'you said', cost: 0.000104 }) },
    ]);
    expect(vectors).toMatchObject({
      vectors: [
        [3, 1, 0],
        [5, 1, 1],
      ],
      totalTokens: 7,
      cost: null,
    });
    expect(server.requests.every(({ authorization }) => authorization === `Bearer ${KEY}`)).toBe(true);
  });

  test('leaving a stream, or exceeding the timeout, cancels the call of the endpoint', async () => {
    const { rest, server } = await withModel();
    server.next({ pieces: streamOf(...'abcdefghijklmnop'), gapMs: 30 });
    expect(await answers(rest, [['llm', 'leave', 'hello']])).toEqual([{ text: 'a' }]);
    await expect.poll(() => server.left()).toBe(1);
    server.next({ silent: true });
    const hanging = call(rest, [['llm', 'complete', 'hello']]);
    await expect.poll(() => server.requests.length).toBe(2);
    rest.clock.advance(60_000);
    expect((await hanging).status).toBe(504);
    await expect.poll(() => server.left()).toBe(2);
  });

  test('invalid arguments are reported before anything is sent', async () => {
    const { rest, server } = await withModel();
    const wrong: Step[] = [
      ['llm', 'chat', [{ role: 'robot', content: 'x' }]],
      ['llm', 'chat', []],
      ['llm', 'complete', 'x', { temperature: 9 }],
      ['llm', 'complete', 'x', { unknown: 1 }],
      ['llm', 'chatWithTools', [{ role: 'user', content: 'x' }], { tools: [] }],
      ['llm', 'complete', 'x', { tier: 'none' }],
      ['embeddings', 'embed', []],
      ['embeddings', 'embed', ['']],
    ];
    for (const answer of await answers(rest, wrong))
      expect(answer).toMatchObject({ code: 'VALIDATION_ERROR' });
    expect(server.requests).toEqual([]);
  });

  test('the key appears in no log, event or answer, also when the endpoint echoes it', async () => {
    const { rest, keeper, server } = await withModel();
    const refusal = { status: 400, json: { error: { message: `bad request with key ${KEY}` } } };
    server.next(refusal, { ...refusal, status: 401 });
    const { body } = await call(rest, [
      ['llm', 'complete', 'a'],
      ['llm', 'complete', 'b'],
    ]);
    expect(body).toMatchObject([{ code: 'VALIDATION_ERROR' }, { code: 'UPSTREAM_UNAVAILABLE' }]);
    expect(JSON.stringify([body, rest.logs.lines, keeper.logs.lines])).not.toContain(KEY);
  });
});

describe('ctx.vectorStore', () => {
  test('vectors are stored and searched per tenant', async () => {
    const { rest } = await start();
    const [written, found, filtered, mismatch, deleted, empty] = await answers(rest, [
      [
        'vectorStore',
        'upsert',
        [
          { id: 'a', vector: [1, 0], metadata: { kind: 'x' } },
          { id: 'b', vector: [0, 1] },
        ],
      ],
      ['vectorStore', 'search', [1, 0.1]],
      ['vectorStore', 'search', [1, 0.1], { filter: { kind: 'x' }, limit: 5, minScore: 0.5 }],
      ['vectorStore', 'search', [1, 0, 0]],
      ['vectorStore', 'delete', 'a'],
      ['vectorStore', 'search', [1, 0], { collection: 'other' }],
    ]);
    expect(written).toEqual({ written: 2 });
    expect(found).toEqual([
      { id: 'a', score: 0.995037, metadata: { kind: 'x' } },
      { id: 'b', score: 0.099504, metadata: {} },
    ]);
    expect(filtered).toEqual([expect.objectContaining({ id: 'a' })]);
    expect(mismatch).toMatchObject({ code: 'VALIDATION_ERROR', details: { dimensions: 2, given: 3 } });
    expect([deleted, empty]).toEqual([1, []]);
    expect(await answers(rest, [['vectorStore', 'search', [0, 1]]], { tenant: 'other' })).toEqual([[]]);
  });
});

describe('permissions and config', () => {
  const each: Step[] = [
    ['storage', 'read', 'k'],
    ['storage', 'write', 'k', 'v'],
    ['llm', 'complete', 'x'],
    ['llm', 'stream', 'x'],
    ['embeddings', 'embed', 'x'],
    ['vectorStore', 'search', [1]],
  ];

  test('a plugin without the permission gets PERMISSION_DENIED, naming what to add', async () => {
    const { rest } = await start({}, ENV, await projectWithoutPermissions());
    const refused = await answers(rest, each);
    each.forEach(([service], index) => {
      expect(refused[index]).toMatchObject({
        code: 'PERMISSION_DENIED',
        details: { permission: `permissions.platform.${service}` },
      });
    });
    const { status, body } = await call(rest, each, { failing: 'thrown' });
    expect([status, body]).toMatchObject([403, { error: { code: 'PERMISSION_DENIED' } }]);
  });

  test('a missing adapter is a warning at load and ADAPTER_NOT_CONFIGURED at the call', async () => {
    const lacking = { storage: null, vectorStore: null };
    const { rest } = await start(lacking);
    const warned = await warnings(lacking);
    expect(warned.map(({ level, pluginId, evidence }) => [level, pluginId, evidence])).toEqual(
      ['storage', 'llm', 'embeddings', 'vectorStore'].map((name) => [
        'warn',
        'library',
        { key: `adapters.${name}` },
      ]),
    );
    const refused = await answers(rest, each);
    each.forEach(([service], index) => {
      expect(refused[index]).toMatchObject({
        code: 'ADAPTER_NOT_CONFIGURED',
        details: { key: `adapters.${service}` },
      });
    });
    const { status, body } = await call(rest, [['llm', 'complete', 'x']], { failing: 'thrown' });
    expect([status, body]).toMatchObject([400, { error: { code: 'ADAPTER_NOT_CONFIGURED' } }]);
  });

  test('an unset variable is named', async () => {
    const llm = { baseUrl: 'http://127.0.0.1/v1', apiKey: variable('ABSENT'), models: { default: 'm' } };
    const { rest } = await start({ llm });
    expect(await warnings({ llm })).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        pluginId: 'library',
        message: expect.stringContaining('adapters.llm.apiKey names ABSENT, which is not set'),
      }),
    );
    expect(await answers(rest, [['llm', 'complete', 'x']])).toMatchObject([
      { code: 'ADAPTER_NOT_CONFIGURED', message: expect.stringContaining('ABSENT is not set') },
    ]);
  });
});

describe('events and metrics', () => {
  test('each standard type has exactly the fields of the specification', async () => {
    const server = await startModelServer();
    const model = { baseUrl: server.baseUrl, prices: { m: { inputPerMillion: 1 } } };
    const { rest } = await start({
      llm: { ...model, models: { default: 'm' } },
      embeddings: { ...model, model: 'm' },
    });
    await answers(rest, [
      ['storage', 'write', 'k', 'four'],
      ['storage', 'read', 'k'],
      ['storage', 'read', 'k'],
      ['llm', 'complete', 'x'],
      ['llm', 'stream', 'x'],
      ['llm', 'chatWithTools', [{ role: 'user', content: 'x' }], { tools: [{ name: 't', parameters: {} }] }],
      ['embeddings', 'embed', 'x'],
      ['vectorStore', 'search', [1]],
      ['vectorStore', 'search', [1]],
    ]);
    await rest.close();
    const payloads = (type: string) => eventsOf(rest, type).map(({ payload }) => payload);
    const durationMs = expect.any(Number);
    expect(payloads('storage.write.completed')).toEqual([{ bytesRead: 0, bytesWritten: 4, durationMs }]);
    const read = { bytesRead: 4, bytesWritten: 0, durationMs };
    expect(payloads('storage.read.completed')).toEqual([read, read]);
    const completion = {
      totalTokens: 20,
      totalCost: 0.000012,
      model: 'test-model-2030-01-01',
      tier: 'default',
      durationMs,
    };
    expect(payloads('llm.completion.completed')).toEqual([completion, completion]);
    expect(payloads('llm.chatWithTools.completed')).toEqual([{ ...completion, toolCalls: 0 }]);
    expect(payloads('embeddings.embed.completed')).toEqual([
      { totalTokens: 7, totalCost: 0.000007, durationMs },
    ]);
    const search = { totalSearches: 1, durationMs };
    expect(payloads('vectorStore.search.completed')).toEqual([search, search]);
    const [event] = eventsOf(rest, 'llm.completion.completed');
    expect(event).toMatchObject({ ctx: { tenantId: 'default', pluginId: 'library', host: 'rest' } });
  });

  test('calls, tokens and costs are counted', async () => {
    const server = await startModelServer();
    const { rest } = await start({
      llm: { baseUrl: server.baseUrl, models: { default: 'm' }, prices: { m: { inputPerMillion: 1e6 } } },
    });
    await answers(rest, [
      ['llm', 'complete', 'x'],
      ['llm', 'complete', 'x', { tier: 'none' }],
    ]);
    const text = await (await rest.fetch('/metrics')).text();
    expect(text).toContain(
      'svc_adapter_calls_total{service="rest",adapter="llm",method="chat",outcome="succeeded"} 1',
    );
    expect(text).toContain(
      'svc_adapter_calls_total{service="rest",adapter="llm",method="chat",outcome="failed"} 1',
    );
    expect(text).toContain(
      'svc_model_tokens_total{service="rest",adapter="llm",model="test-model-2030-01-01",direction="output"} 8',
    );
    expect(text).toContain(
      'svc_model_cost_dollars_total{service="rest",adapter="llm",model="test-model-2030-01-01"} 12',
    );
  });
});
