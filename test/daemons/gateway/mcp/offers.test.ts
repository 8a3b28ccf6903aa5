import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { listAudit, PLATFORM_PROMPT_NAMES } from '../../../../src/contracts/index.ts';
import { PROMPTS } from '../../../../src/daemons/gateway/mcp/prompts.ts';
import { packageRoot } from '../../../../src/kit/files/paths.ts';
import { checkManifest } from '../../../../src/plugins/registry/manifest-file.ts';
import type { AnyJson } from '../../../support/any-json.ts';
import { atEnd } from '../../../support/at-end.ts';
import { ADMIN_TOKEN, MEMBER_TOKEN, OTHER_TOKEN } from '../../../support/gateway.ts';
import { callTool, ERAS, type Era, refusedTool, startMcp } from '../../../support/mcp.ts';

const TIMEOUT = { timeout: 60_000 };
const NEWEST = ERAS[1];
const mcp = { expose: true, readOnly: true };
const PROJECT = {
  manifest: {
    commands: [
      { id: 'huge', handler: 'shop.js#huge', mcp },
      { id: 'broken', handler: 'shop.js#broken', mcp },
      { id: 'steps', handler: 'shop.js#steps', mcp },
      { id: 'confirm', handler: 'shop.js#confirm', mcp: { ...mcp, readOnly: false } },
      { id: 'other', handler: 'shop.js#confirm', mcp },
      { id: 'order', handler: 'shop.js#order' },
      { id: 'secret', handler: 'shop.js#order', mcp: { expose: false, destructive: true } },
    ],
    mcp: {
      prompts: [
        {
          id: 'refund',
          arguments: [{ name: 'order', required: true, values: ['o-1', 'p-2'] }],
          command: 'order',
        },
      ],
      resources: [
        { uri: 'shop://orders/{order}.json', name: 'Order', command: 'order' },
        { uri: 'shop://secret', name: 'Secret', command: 'secret' },
      ],
    },
  },
  code: `
import { askClient, clientAnswers, content, defineCommand, ok } from 'svc-platform/sdk';
export const huge = defineCommand(async () =>
  ok(content({ type: 'text', text: 'x'.repeat(150_000) }, { type: 'image', data: 'A'.repeat(400_000), mimeType: 'image/png' })));
export const broken = defineCommand(async () => ok({ $content: [{ type: 'image', data: '<svg>', mimeType: 'image/png' }] }));
export const steps = defineCommand(async (ctx) => {
  for (const done of [1, 1, 0, 2, NaN]) ctx.progress(done, 2, 'step ' + done);
  ctx.log.debug('small');
  ctx.log.warn('large, with sk_live_abcdefghijklmnop');
  await new Promise((resolve) => setTimeout(resolve, 300));
  return ok('done');
});
export const confirm = defineCommand(async (ctx, { order } = {}) => {
  const { answers, state } = clientAnswers(ctx);
  if (state?.order !== order) {
    const requestedSchema = { type: 'object', properties: { sure: { type: 'boolean' } }, required: ['sure'] };
    return ok(askClient({ sure: { method: 'elicitation/create', params: { message: 'Sure?', requestedSchema } } }, { order }));
  }
  return ok({ order, sure: answers.sure?.content?.sure ?? null });
});
export const order = defineCommand(async (ctx, input) => ok({ ...input, tenant: ctx.tenantId }));
`,
};

/** Connects a client that can be asked, which answers yes. */
async function connectAsked(url: string, token = ADMIN_TOKEN): Promise<{ client: Client; asked: AnyJson[] }> {
  const asked: AnyJson[] = [];
  const client = new Client(
    { name: 'test', version: '1.0.0' },
    { capabilities: { elicitation: {} }, versionNegotiation: { mode: NEWEST } },
  );
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    asked.push(params);
    return { action: 'accept', content: { sure: true } };
  });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', url), { requestInit }));
  atEnd(() => client.close());
  return { client, asked };
}

/** Sends a tool call of the newest revision without the client. */
async function postCall(url: string, token: string, params: AnyJson): Promise<AnyJson> {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': NEWEST.pin,
    'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
  };
  const reply = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...{ authorization: `Bearer ${token}`, 'mcp-protocol-version': NEWEST.pin },
      ...{ 'mcp-method': 'tools/call', 'mcp-name': params.name },
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...params, _meta } }),
  });
  return reply.json();
}

test.each(ERAS)('prompts and resources of plugins are offered: %j', TIMEOUT, async (era: Era) => {
  const { connect, gateway } = await startMcp({ project: PROJECT });
  const client = await connect(undefined, era);
  const { prompts } = await client.listPrompts();
  expect(prompts.at(-1)).toMatchObject({
    name: 'acme_shop_refund',
    arguments: [{ name: 'order', required: true }],
  });
  expect(JSON.stringify(prompts)).not.toContain('p-2');
  const prompt = await client.getPrompt({ name: 'acme_shop_refund', arguments: { order: 'o-1', more: 'x' } });
  expect(JSON.parse((prompt.messages[0]!.content as { text: string }).text)).toEqual({
    order: 'o-1',
    tenant: 'default',
  });
  await expect(client.getPrompt({ name: 'acme_shop_refund' })).rejects.toThrow(/needs the argument order/);
  const ref = { type: 'ref/prompt' as const, name: 'acme_shop_refund' };
  const { completion } = await client.complete({ ref, argument: { name: 'order', value: 'o' } });
  expect(completion.values).toEqual(['o-1']);

  const { resourceTemplates } = await client.listResourceTemplates();
  expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toContain('shop://orders/{order}.json');
  const uri = 'shop://orders/o%2F1.json';
  const read = await client.readResource({ uri });
  expect(read.contents[0]).toMatchObject({ uri, _meta: { 'svc-platform/untrusted': true } });
  expect(JSON.parse((read.contents[0] as { text: string }).text)).toMatchObject({ order: 'o/1', uri });
  for (const unknown of [
    'shop://orders/.json',
    'shop://orders/a/b.json',
    'shop://orders/%zz.json',
    'shop://',
  ])
    await expect(client.readResource({ uri: unknown })).rejects.toThrow(/no resource/);
  const { items } = await gateway.call(listAudit, { query: { action: 'mcp.call' } });
  expect(items.map(({ object }) => object)).toEqual(['tool:acme_shop_order', 'tool:acme_shop_order']);
});

test('a resource needs the role of its command, and runs for the tenant of the caller', TIMEOUT, async () => {
  const { connect } = await startMcp({ project: PROJECT });
  const member = await connect(MEMBER_TOKEN);
  expect(JSON.stringify((await member.listResources()).resources)).not.toContain('shop://secret');
  await expect(member.readResource({ uri: 'shop://secret' })).rejects.toMatchObject({
    data: { code: 'FORBIDDEN' },
  });
  const other = await connect(OTHER_TOKEN);
  const read = await other.readResource({ uri: 'shop://orders/o-1.json' });
  expect((read.contents[0] as { text: string }).text).not.toContain('"default"');
});

test('content is bounded, and says what was cut', TIMEOUT, async () => {
  const { connect } = await startMcp({ project: PROJECT });
  const client = await connect();
  const { content, _meta } = await client.callTool({ name: 'acme_shop_huge', arguments: {} });
  const [notice, text, image] = content as AnyJson[];
  expect(notice.text).toMatch(/data from outside/);
  expect(text.text.length).toBeLessThan(101_000);
  expect(text.text).toMatch(/50000 of 150000 characters left out/);
  expect(image.data).toHaveLength(400_000);
  expect(_meta).toMatchObject({ 'svc-platform/untrusted': true });
  expect(await refusedTool(client, 'acme_shop_broken')).toMatchObject({
    code: 'EXECUTION_ERROR',
    message: expect.stringMatching(/must be base64/),
  });
});

test.each(ERAS)(
  'progress and log lines reach the client that asks for them: %j',
  TIMEOUT,
  async (era: Era) => {
    const { connect } = await startMcp({ project: PROJECT });
    const client = await connect(undefined, era);
    const lines: AnyJson[] = [];
    client.setNotificationHandler('notifications/message', ({ params }) => void lines.push(params));
    const reports: number[] = [];
    const onprogress = ({ progress }: { progress: number }) => void reports.push(progress);
    const call = { name: 'acme_shop_steps', arguments: {} };
    await client.callTool(call, { onprogress });
    expect(reports).toEqual([1, 2]);
    expect(lines).toEqual([]);
    if (era === 'legacy') await client.setLoggingLevel('warning');
    const _meta = era === 'legacy' ? {} : { 'io.modelcontextprotocol/logLevel': 'warning' };
    await client.callTool({ ...call, _meta });
    await expect.poll(() => lines.length).toBe(1);
    expect(lines).toMatchObject([{ level: 'warning', logger: '@acme/shop' }]);
    expect(lines[0].data).toMatch(/^large/);
    expect(lines[0].data).not.toContain('sk_live_abcdefghijklmnop');
  },
);

test('a command asks its client, and gets the answer with its own state only', TIMEOUT, async () => {
  const { gateway, connect } = await startMcp({ project: PROJECT });
  const { client, asked } = await connectAsked(gateway.url);
  expect(await callTool(client, 'acme_shop_confirm', { order: 'o-1' })).toEqual({ order: 'o-1', sure: true });
  expect(asked).toMatchObject([{ message: 'Sure?' }]);

  const first = { name: 'acme_shop_confirm', arguments: { order: 'o-1' } };
  const { result } = await postCall(gateway.url, ADMIN_TOKEN, first);
  const { requestState } = result;
  const inputResponses = { sure: { action: 'accept', content: { sure: true } } };
  const refused = { error: { code: -32602, data: { reason: 'invalid_request_state' } } };
  const answered = { ...first, inputResponses, requestState };
  expect(await postCall(gateway.url, OTHER_TOKEN, answered)).toMatchObject(refused);
  expect(
    await postCall(gateway.url, ADMIN_TOKEN, { ...answered, requestState: `${requestState}x` }),
  ).toMatchObject(refused);
  // Another tool, another input, or no state: the command asks again.
  const asks = { result: { resultType: 'input_required' } };
  expect(await postCall(gateway.url, ADMIN_TOKEN, { ...answered, name: 'acme_shop_other' })).toMatchObject(
    asks,
  );
  expect(
    await postCall(gateway.url, ADMIN_TOKEN, { ...answered, arguments: { order: 'o-2' } }),
  ).toMatchObject(asks);
  expect(await postCall(gateway.url, ADMIN_TOKEN, { ...first, inputResponses })).toMatchObject(asks);
  expect(await postCall(gateway.url, ADMIN_TOKEN, answered)).toMatchObject({
    result: { resultType: 'complete' },
  });

  // A client that cannot be asked gets an error of the protocol, or of the tool in the earlier revision.
  const silent = await connect(undefined, NEWEST);
  await expect(silent.callTool(first)).rejects.toThrow(/capabilit/i);
  const earlier = await (await connect()).callTool(first);
  expect(earlier.isError).toBe(true);
});

test('the names of prompts and the schemes of resources are kept apart', () => {
  const faultsOf = (offers: object) =>
    checkManifest({
      ...{ schema: 'svc.plugin/3', id: '@acme/shop', version: '1.0.0', mcp: offers },
      commands: [{ id: 'order', handler: 'shop.js#order' }],
    }).faults.map(({ path, message }) => `${path}: ${message}`);
  const prompt = (id: string, more: object = {}) => ({ id, command: 'order', ...more });
  const resource = (uri: string, command = 'order') => ({ uri, name: 'Order', command });
  expect(faultsOf({ prompts: [prompt('a')], resources: [resource('shop://a/{b}')] })).toEqual([]);
  expect(faultsOf({ prompts: [prompt('a', { name: 'write_a_plugin' })] })).toEqual([
    'mcp.prompts[0]: the platform has a prompt "write_a_plugin" of its own: set "name"',
  ]);
  expect(faultsOf({ prompts: [prompt('a.b'), prompt('a:b')] })).toEqual([
    'mcp.prompts[1]: the prompt "a.b" has the name "acme_shop_a_b" too: set "name"',
  ]);
  expect(faultsOf({ prompts: [prompt('x'.repeat(60))] })[0]).toMatch(/at most 48/);
  expect(faultsOf({ resources: [resource('svc://docs/mcp')] })[0]).toMatch(/must not begin with svc:/);
  expect(faultsOf({ resources: [resource('shop://{a}.{b}')] })[0]).toMatch(/at most one parameter/);
  expect(faultsOf({ resources: [resource('shop://{a}'), resource('shop://{b}')] })[0]).toMatch(
    /another resource/,
  );
  expect(faultsOf({ resources: [resource('shop://a', 'none')] })).toEqual([
    'mcp.resources[0].command: the manifest has no command "none"',
  ]);
});

test('a plugin cannot take the prompts or the scheme of another', TIMEOUT, async () => {
  const { gateway } = await startMcp({
    config: { plugins: ['./plugins/*', join(packageRoot, 'test/fixtures/plugins/mcp-conformance')] },
    project: {
      ...PROJECT,
      manifest: {
        commands: [{ id: 'order', handler: 'shop.js#order' }],
        mcp: {
          prompts: [{ id: 'spoof', name: 'test_simple_prompt', command: 'order' }],
          resources: [{ uri: 'test://other', name: 'Other', command: 'order' }],
        },
      },
    },
  });
  const { plugins } = gateway.services as { plugins: { registry: { broken: AnyJson[] } } };
  const messages = plugins.registry.broken.flatMap(({ faults }) =>
    faults.map(({ message }: AnyJson) => message),
  );
  expect([...new Set(messages)]).toEqual([
    expect.stringMatching(/prompt name "test_simple_prompt" already belongs to the plugin/),
    expect.stringMatching(/scheme "test" already belong to the plugin/),
  ]);
});

test('the list of reserved names is that of the prompts of the platform', () => {
  expect(PROMPTS.map(({ name }) => name)).toEqual(PLATFORM_PROMPT_NAMES);
});
