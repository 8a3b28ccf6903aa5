import type { Client } from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { listAudit } from '../../../../src/contracts/index.ts';
import { StreamedRequests } from '../../../../src/daemons/gateway/mcp/streamed-requests.ts';
import { systemRandom } from '../../../../src/kit/security/random.ts';
import type { AnyJson } from '../../../support/any-json.ts';
import { ADMIN_TOKEN, MEMBER_TOKEN } from '../../../support/gateway.ts';
import { type ConnectOptions, callTool, refusedTool, startMcp } from '../../../support/mcp.ts';

const TIMEOUT = { timeout: 60_000 };
const mcp = { expose: true, readOnly: true };
const PROJECT = {
  manifest: {
    commands: [
      { id: 'confirm', handler: 'shop.js#confirm', mcp },
      { id: 'endless', handler: 'shop.js#endless', mcp },
      { id: 'model', handler: 'shop.js#model', mcp },
    ],
    mcp: { prompts: [{ id: 'refund', command: 'confirm' }] },
  },
  code: `
import { askClient, clientAnswers, defineCommand, ok } from 'svc-platform/sdk';
const requestedSchema = { type: 'object', properties: { sure: { type: 'boolean' } }, required: ['sure'] };
const asks = (message) => ({ method: 'elicitation/create', params: { message, requestedSchema } });
export const confirm = defineCommand(async (ctx, { order } = {}) => {
  const { answers, state, supported } = clientAnswers(ctx);
  if (!state) return ok(askClient({ sure: asks('Sure?'), really: asks('Really?') }, { supported }));
  return ok({ order, supported: state.supported, sure: answers.sure, really: answers.really });
});
export const endless = defineCommand(async () => ok(askClient({ sure: asks('Again?') })));
export const model = defineCommand(async () =>
  ok(askClient({ one: { method: 'sampling/createMessage', params: { messages: [{ role: 'user' }], maxTokens: 5 } } })));
`,
};
const YES = { action: 'accept' as const, content: { sure: true } };

/** Options of a client that shows forms. */
function answering(answer: (id: string, message: string) => Promise<AnyJson>): ConnectOptions {
  return {
    capabilities: { elicitation: {} },
    prepare: (client) =>
      client.setRequestHandler('elicitation/create', async ({ params }, { mcpReq }) =>
        answer(String(mcpReq.id), params.message),
      ),
  };
}

const confirm = (client: Client) => callTool(client, 'acme_shop_confirm', { order: 'o-1' });

test('a command asks a client of the revision 2025-11-25 on the stream of the call', TIMEOUT, async () => {
  const { gateway, connect } = await startMcp({ project: PROJECT });
  const asked: string[] = [];
  const answer = async (_: string, message: string) => {
    asked.push(message);
    return message === 'Sure?' ? YES : { action: 'decline' };
  };
  const client = await connect(undefined, 'legacy', answering(answer));
  const answers = { sure: YES, really: { action: 'decline' } };
  expect(await confirm(client)).toEqual({ order: 'o-1', supported: ['elicitation'], ...answers });
  expect(asked.toSorted()).toEqual(['Really?', 'Sure?']);
  const { items } = await gateway.call(listAudit, { query: { action: 'mcp.call' } });
  expect(items.map(({ object }) => object)).toEqual(['tool:acme_shop_confirm', 'tool:acme_shop_confirm']);

  const { messages } = await client.getPrompt({ name: 'acme_shop_refund', arguments: {} });
  expect(JSON.parse((messages[0]!.content as { text: string }).text)).toMatchObject(answers);
});

test('only the session that was asked can answer', TIMEOUT, async () => {
  const { gateway, connect } = await startMcp({ project: PROJECT });
  const { promise: shown, resolve: show } = Promise.withResolvers<string>();
  const { promise: hold, resolve: release } = Promise.withResolvers<void>();
  const owner = await connect(
    undefined,
    'legacy',
    answering(async (id, message) => {
      if (message === 'Sure?') show(id);
      await hold;
      return YES;
    }),
  );
  const ended = confirm(owner);
  const id = await shown;
  const forge = (token: string, session: string | undefined) =>
    fetch(`${gateway.url}/mcp`, {
      method: 'POST',
      headers: {
        ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        ...{ authorization: `Bearer ${token}`, ...(session ? { 'mcp-session-id': session } : {}) },
      },
      body: JSON.stringify({ jsonrpc: '2.0', id, result: { action: 'decline' } }),
    });
  const { sessionId } = owner.transport as { sessionId?: string };
  expect(sessionId).toMatch(/^forms-/);
  expect((await forge(MEMBER_TOKEN, sessionId)).status).toBe(202);
  expect((await forge(ADMIN_TOKEN, undefined)).status).toBe(202);
  expect((await forge(ADMIN_TOKEN, 'forms-other')).status).toBe(202);
  release();
  expect(await ended).toMatchObject({ sure: YES, really: YES });
});

test(
  'a call ends if the client cannot answer, answers with an error, or is asked forever',
  TIMEOUT,
  async () => {
    const { connect } = await startMcp({ project: PROJECT });
    const isError = async (client: Client, name: string) =>
      (await client.callTool({ name, arguments: {} })).isError;
    expect(await isError(await connect(), 'acme_shop_confirm')).toBe(true);

    let asked = 0;
    const client = await connect(
      undefined,
      'legacy',
      answering(async () => {
        asked++;
        return YES;
      }),
    );
    expect(await isError(client, 'acme_shop_model')).toBe(true);
    expect(asked).toBe(0);
    await expect(refusedTool(client, 'acme_shop_endless')).rejects.toThrow(/has asked its client 8 times/);
    expect(asked).toBe(8);

    const failing = answering(async () => {
      throw new Error('no window');
    });
    await expect(confirm(await connect(undefined, 'legacy', failing))).rejects.toThrow(/did not answer/);
  },
);

test(
  'a call that waits for an answer can be cancelled, and counts as a call in flight',
  TIMEOUT,
  async () => {
    const config = { gateway: { mcp: { concurrentCalls: 1 } } };
    const { connect } = await startMcp({ project: PROJECT, config });
    const { promise: shown, resolve: show } = Promise.withResolvers<void>();
    const waiting = await connect(
      undefined,
      'legacy',
      answering(async () => {
        show();
        await new Promise(() => {});
      }),
    );
    const control = new AbortController();
    const ended = waiting
      .callTool({ name: 'acme_shop_confirm', arguments: {} }, { signal: control.signal })
      .catch((error) => error);
    await shown;
    const other = await connect(
      undefined,
      'legacy',
      answering(async () => YES),
    );
    await expect(confirm(other)).rejects.toThrow(/in flight/);
    control.abort(new Error('the user has closed the form'));
    expect(await ended).toBeInstanceOf(Error);
    await expect.poll(() => confirm(other).catch(String), { interval: 200 }).toMatchObject({ sure: YES });
  },
);

test('a request that is not answered rejects when its call ends, and late answers are ignored', async () => {
  const requests = new StreamedRequests(systemRandom());
  const call = { caller: { hostId: 'a', namespaceId: 'one' }, connection: 'forms-1' } as never;
  const control = new AbortController();
  const ids: string[] = [];
  const send = async (id: string): Promise<void> => void ids.push(id);
  const asked = requests.ask(call, send, control.signal);
  control.abort(new Error('gone'));
  await expect(asked).rejects.toThrow('gone');
  const late = { jsonrpc: '2.0', id: ids[0], result: YES };
  expect(requests.take(late, call)).toBe(true);
  expect(requests.take({ ...late, id: 'svc-question.x' }, call)).toBe(false);
  expect(requests.take({ ...late, method: 'ping' }, call)).toBe(false);
  await expect(
    requests.ask(call, () => Promise.reject(new Error('closed')), new AbortController().signal),
  ).rejects.toThrow('closed');
});
