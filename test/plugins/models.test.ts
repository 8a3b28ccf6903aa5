import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { AdaptersConfig } from '../../src/contracts/index.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import { keepSecret, keepTenantSecret, maskedError } from '../../src/kit/telemetry/redact.ts';
import { type ManualClock, manualClock, systemClock } from '../../src/kit/time/clock.ts';
import { openAiEmbedder, openAiModel } from '../../src/plugins/models/openai.ts';
import { completion, type ModelServer, startModelServer, streamOf } from '../support/openai-server.ts';
import { failureOf } from './support.ts';

const KEY = 'sk-test-0123456789-abcdefghij';
const variable = (name: string): string => ['$', `{${name}}`].join('');
const PRICES = { 'test-model': { inputPerMillion: 2, outputPerMillion: 10 } };
const never = new AbortController().signal;
const ask = (content = 'hello') => ({ messages: [{ role: 'user' as const, content }] });

/** Chance that is none, so that waits are known. */
const random = { ...systemRandom(), fraction: () => 0 };

function modelOf(server: Pick<ModelServer, 'baseUrl'>, config: object = {}, clock = systemClock) {
  const llm = {
    baseUrl: server.baseUrl,
    apiKey: variable('KEY'),
    models: { default: 'test-model', small: 'small-model' },
    prices: PRICES,
    ...config,
  };
  return openAiModel(AdaptersConfig.parse({ llm }).llm!, { env: { KEY }, clock, random });
}
function embedderOf(server: Pick<ModelServer, 'baseUrl'>, config: object = {}) {
  const embeddings = { baseUrl: server.baseUrl, model: 'test-model', prices: PRICES, ...config };
  return openAiEmbedder(AdaptersConfig.parse({ embeddings }).embeddings!, {
    env: {},
    clock: systemClock,
    random,
  });
}

/** An address where nobody listens. */
async function closedUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}/v1`;
}

test('a chat: what is sent, what comes back, what it cost', async () => {
  const server = await startModelServer();
  const reply = await modelOf(server).chat(
    { ...ask(), temperature: 0.5, stop: ['END'], json: true, maxTokens: 100 },
    never,
  );
  expect(reply).toEqual({
    text: 'you said: hello',
    finishReason: 'stop',
    model: 'test-model-2030-01-01',
    tier: 'default',
    usage: { inputTokens: 12, outputTokens: 8, totalTokens: 20 },
    cost: 0.000104,
    toolCalls: [],
  });
  const [sent] = server.requests;
  expect(sent).toMatchObject({ path: '/v1/chat/completions', authorization: `Bearer ${KEY}` });
  expect(sent!.body).toEqual({
    model: 'test-model',
    messages: [{ role: 'user', content: 'hello' }],
    max_tokens: 100,
    temperature: 0.5,
    stop: ['END'],
    response_format: { type: 'json_object' },
  });
});

test('tiers name models; one without a price costs null, an unknown tier is refused with those there are', async () => {
  const server = await startModelServer();
  const model = modelOf(server, { maxOutputTokens: 50, maxTokensField: 'max_completion_tokens' });
  expect(await model.chat({ ...ask(), tier: 'small', maxTokens: 999 }, never)).toMatchObject({
    tier: 'small',
    cost: null,
  });
  expect(server.requests[0]!.body).toMatchObject({ model: 'small-model', max_completion_tokens: 50 });
  const failure = await failureOf(model.chat({ ...ask(), tier: 'constructor' }, never));
  expect(failure).toMatchObject({ code: 'VALIDATION_ERROR', details: { tiers: ['default', 'small'] } });
});

test('tools: calls come back with their arguments read, and go out again with the answers', async () => {
  const server = await startModelServer();
  const call = {
    id: 'call_1',
    type: 'function',
    function: { name: 'weather', arguments: '{"city":"Oslo"}' },
  };
  server.next({ json: completion({ content: null, tool_calls: [call] }, 'tool_calls') });
  const tools = [{ name: 'weather', parameters: { type: 'object' } }];
  const model = modelOf(server);
  const reply = await model.chat({ ...ask(), tools, toolChoice: { name: 'weather' } }, never);
  expect(reply).toMatchObject({
    text: '',
    finishReason: 'tool_calls',
    toolCalls: [{ id: 'call_1', name: 'weather', arguments: { city: 'Oslo' } }],
  });
  expect(server.requests[0]!.body).toMatchObject({
    tools: [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }],
    tool_choice: { type: 'function', function: { name: 'weather' } },
  });
  await model.chat(
    {
      messages: [
        { role: 'user', content: 'and?' },
        { role: 'assistant', content: '', toolCalls: reply.toolCalls },
        { role: 'tool', toolCallId: 'call_1', content: 'rain' },
      ],
      tools,
    },
    never,
  );
  expect(server.requests[1]!.body.messages).toEqual([
    { role: 'user', content: 'and?' },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', content: 'rain', tool_call_id: 'call_1' },
  ]);
  const broken = { ...call, function: { name: 'weather', arguments: '{"city":' } };
  server.next({ json: completion({ content: null, tool_calls: [broken] }) });
  expect(await failureOf(model.chat({ ...ask(), tools }, never))).toMatchObject({
    code: 'UPSTREAM_UNAVAILABLE',
    details: { errorClass: 'malformed' },
  });
});

async function collect(
  stream: AsyncGenerator<string, unknown>,
): Promise<{ pieces: string[]; reply: unknown }> {
  const pieces: string[] = [];
  for (;;) {
    const { value, done } = await stream.next();
    if (done) return { pieces, reply: value };
    pieces.push(value);
  }
}

test('a stream: pieces as they come, then the whole with its usage', async () => {
  const server = await startModelServer();
  server.next({ pieces: streamOf('Hel', 'lo \u{1F600}') });
  const { pieces, reply } = await collect(modelOf(server).stream(ask(), never));
  expect(pieces).toEqual(['Hel', 'lo \u{1F600}']);
  expect(reply).toMatchObject({
    text: 'Hello \u{1F600}',
    finishReason: 'stop',
    usage: { totalTokens: 20 },
    cost: 0.000104,
  });
  expect(server.requests[0]!.body).toMatchObject({ stream: true, stream_options: { include_usage: true } });
});

test('a stream that breaks off, is malformed or tells an error fails; one refused at first is tried again', async () => {
  const server = await startModelServer();
  const model = modelOf(server);
  const [first] = streamOf('Hel');
  server.next({ pieces: [first], cut: true });
  expect(await failureOf(collect(model.stream(ask(), never)))).toMatchObject({
    details: { errorClass: 'network' },
  });
  server.next({ pieces: [first, '{not json'] });
  expect(await failureOf(collect(model.stream(ask(), never)))).toMatchObject({
    details: { errorClass: 'malformed' },
  });
  server.next({ pieces: [first, { error: { message: 'overloaded' } }] });
  expect(await failureOf(collect(model.stream(ask(), never)))).toMatchObject({
    message: expect.stringContaining('overloaded'),
  });
  server.next({ status: 503, json: {} });
  expect((await collect(model.stream(ask(), never))).pieces).toEqual(['you ', 'said']);
  expect(server.requests).toHaveLength(5);
});

test('a caller that leaves a stream ends the call of the endpoint', async () => {
  const server = await startModelServer();
  server.next({ pieces: streamOf(...'abcdefghij'), gapMs: 20 });
  const stream = modelOf(server).stream(ask(), never);
  expect((await stream.next()).value).toBe('a');
  await stream.return(undefined as never);
  await expect.poll(() => server.left()).toBe(1);
});

test('an aborted signal ends the call with its reason, also while it waits to try again', async () => {
  const server = await startModelServer();
  const reason = new Error('the caller left');
  server.next({ silent: true });
  const silent = new AbortController();
  const call = failureOf(modelOf(server).chat(ask(), silent.signal));
  await expect.poll(() => server.requests.length).toBe(1);
  silent.abort(reason);
  expect(await call).toBe(reason);
  await expect.poll(() => server.left()).toBe(1);

  server.next({ status: 429, headers: { 'retry-after': '20' }, json: {} });
  const waiting = new AbortController();
  const retried = failureOf(modelOf(server).chat(ask(), waiting.signal));
  await expect.poll(() => server.requests.length).toBe(2);
  waiting.abort(reason);
  expect(await retried).toBe(reason);
});

/** Answers a call on a clock that is moved by hand, a second at a time, and tells how long it took. */
async function timed(clock: ManualClock, call: Promise<unknown>): Promise<{ ms: number; failure: unknown }> {
  const startedAt = clock.now();
  let failure: unknown;
  let over = false;
  void call.then(
    () => {
      over = true;
    },
    (error) => {
      over = true;
      failure = error;
    },
  );
  while (!over) {
    await new Promise((resolve) => setTimeout(resolve, 15));
    if (!over) clock.advance(500);
  }
  return { ms: clock.now() - startedAt, failure };
}

test.each([
  ['429 with Retry-After', { status: 429, headers: { 'retry-after': '7' }, json: {} }, 2, 7000],
  [
    '503 with Retry-After as a date',
    { status: 503, headers: { 'retry-after': 'Tue, 01 Jan 2030 00:00:06 GMT' }, json: {} },
    2,
    6000,
  ],
  ['500', { status: 500, text: 'oops' }, 2, 0],
  ['409', { status: 409, json: {} }, 2, 0],
])('%s is retried after the delay it names', async (_, answer, requests, waitMs) => {
  const server = await startModelServer();
  server.next(answer);
  const clock = manualClock();
  const { ms, failure } = await timed(
    clock,
    modelOf(server, { timeoutMs: 3_600_000 }, clock).chat(ask(), never),
  );
  expect(failure).toBeUndefined();
  expect(server.requests).toHaveLength(requests);
  expect(ms).toBeGreaterThanOrEqual(waitMs);
  expect(ms).toBeLessThan(waitMs + 5000);
});

test.each([
  ['400', 400, 'VALIDATION_ERROR', 'refused'],
  ['404', 404, 'VALIDATION_ERROR', 'refused'],
  ['401', 401, 'UPSTREAM_UNAVAILABLE', 'auth'],
  ['403', 403, 'UPSTREAM_UNAVAILABLE', 'auth'],
])('%s is not retried, and is %s', async (_, status, code, errorClass) => {
  const server = await startModelServer();
  server.next({ status, json: { error: { message: `Incorrect API key provided: ${KEY}` } } });
  const failure = await failureOf(modelOf(server).chat(ask(), never));
  expect(failure).toMatchObject({ code, details: { errorClass, status, attempts: 1 } });
  expect(server.requests).toHaveLength(1);
  if (errorClass === 'auth') {
    expect(failure.message).toContain('adapters.llm.apiKey');
    expect(failure.message).not.toContain(KEY);
  }
});

test('texts of an endpoint are masked with secrets of the platform, and never with those of tenants', async () => {
  const [platform, mine, other] = ['platform', 'mine', 'other'].map((name) => `the-value-of-${name}-7f3k`);
  keepSecret([platform]);
  keepTenantSecret({ namespaceId: 'models-mine', name: 'A' }, mine!);
  keepTenantSecret({ namespaceId: 'models-other', name: 'A' }, other!);
  const message = `no model ${platform} or ${other} or ${mine}`;
  const server = await startModelServer();
  const model = modelOf(server, { maxAttempts: 1 });
  server.next({ status: 400, json: { error: { message } } });
  const whole = await failureOf(model.chat(ask(), never));
  server.next({ pieces: [{ error: { message } }] });
  const streamed = await failureOf(collect(model.stream(ask(), never)));
  for (const failure of [whole, streamed]) {
    // A tenant that guesses a value of another tenant must not see whether it was right.
    expect(failure.message).toContain(`no model [redacted] or ${other} or ${mine}`);
    expect((maskedError(failure, 'models-mine') as Error).message).toContain(`or ${other} or [redacted]`);
  }
});

test('a rate limit that lasts longer than a handler is reported at once', async () => {
  const server = await startModelServer();
  server.next({ status: 429, headers: { 'retry-after': '3600' }, json: { error: { message: 'quota' } } });
  expect(await failureOf(modelOf(server).chat(ask(), never))).toMatchObject({
    code: 'UPSTREAM_UNAVAILABLE',
    details: { errorClass: 'rate_limit', retryAfterMs: 3_600_000, attempts: 1 },
  });
});

test('when all attempts fail, the last failure and the number of attempts are reported', async () => {
  const server = await startModelServer();
  server.next(...Array.from({ length: 3 }, () => ({ status: 502, text: '<html>' })));
  expect(await failureOf(modelOf(server).chat(ask(), never))).toMatchObject({
    code: 'UPSTREAM_UNAVAILABLE',
    details: { errorClass: 'server', status: 502, attempts: 3 },
  });
  expect(
    await failureOf(modelOf({ baseUrl: await closedUrl() }, { maxAttempts: 1 }).chat(ask(), never)),
  ).toMatchObject({
    details: { errorClass: 'network' },
    message: expect.stringContaining('ECONNREFUSED'),
  });
});

test('a silent endpoint is UPSTREAM_TIMEOUT, for a whole answer and between two pieces', async () => {
  const server = await startModelServer();
  server.next({ silent: true });
  const model = modelOf(server, { timeoutMs: 100, maxAttempts: 1 });
  expect(await failureOf(model.chat(ask(), never))).toMatchObject({ code: 'UPSTREAM_TIMEOUT' });
  server.next({ pieces: streamOf('a', 'b'), gapMs: 400 });
  expect(await failureOf(collect(model.stream(ask(), never)))).toMatchObject({ code: 'UPSTREAM_TIMEOUT' });
});

test('answers are bounded, and must be answers', async () => {
  const server = await startModelServer();
  const model = modelOf(server, { maxResponseBytes: 2000, maxAttempts: 1 });
  server.next({ json: completion({ content: 'x'.repeat(3000) }) });
  expect(await failureOf(model.chat(ask(), never))).toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
  server.next({ pieces: streamOf('x'.repeat(1500), 'y'.repeat(1500)) });
  expect(await failureOf(collect(model.stream(ask(), never)))).toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
  for (const answer of [{ text: 'no json' }, { json: { choices: [] } }, { json: [] }]) {
    server.next(answer);
    expect(await failureOf(model.chat(ask(), never))).toMatchObject({ details: { errorClass: 'malformed' } });
  }
});

test('embeddings come in the order of the texts, with their tokens and cost', async () => {
  const server = await startModelServer();
  const reply = await embedderOf(server, { dimensions: 3 }).embed(['one', 'three'], never);
  expect(reply).toEqual({
    vectors: [
      [3, 1, 0],
      [5, 1, 1],
    ],
    model: 'test-model',
    totalTokens: 7,
    cost: 0.000014,
  });
  expect(server.requests[0]).toMatchObject({
    authorization: undefined,
    body: { dimensions: 3, input: ['one', 'three'] },
  });
  server.next({ json: { data: [{ index: 1, embedding: [1] }] } });
  expect(await failureOf(embedderOf(server).embed(['one', 'two'], never))).toMatchObject({
    details: { errorClass: 'malformed' },
  });
});

test('a key that is not in the environment is ADAPTER_NOT_CONFIGURED, by name', () => {
  const llm = AdaptersConfig.parse({
    llm: { baseUrl: 'http://127.0.0.1/v1', apiKey: variable('ABSENT'), models: { default: 'm' } },
  }).llm!;
  expect(() => openAiModel(llm, { env: {}, clock: systemClock, random })).toThrow(
    expect.objectContaining({
      code: 'ADAPTER_NOT_CONFIGURED',
      details: { key: 'adapters.llm.apiKey', variable: 'ABSENT' },
    }),
  );
});
