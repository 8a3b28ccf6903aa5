import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, RequestOptions } from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { CallsInFlight } from '../../../../src/daemons/gateway/mcp/calls-in-flight.ts';
import type { AnyJson } from '../../../support/any-json.ts';
import { MEMBER_TOKEN } from '../../../support/gateway.ts';
import { callTool, ERAS, errorIn, startMcp } from '../../../support/mcp.ts';
import { messageOf, post, toolCall } from '../../../support/mcp-messages.ts';
import { request, startTask } from '../../../support/mcp-tasks.ts';

const TIMEOUT = { timeout: 120_000 };

const STOPPABLE = {
  // One process, so that the command can count its calls.
  config: { execution: { worker: { maxProcesses: 1 } } },
  project: {
    manifest: {
      commands: [
        { id: 'endless', handler: 'shop.js#endless', mcp: { expose: true, readOnly: true } },
        { id: 'slow', handler: 'shop.js#slow', mcp: { expose: true, readOnly: true } },
        { id: 'state', handler: 'shop.js#state', mcp: { expose: true, readOnly: true } },
      ],
      mcp: {
        prompts: [{ id: 'endless', command: 'endless' }],
        resources: [{ uri: 'shop://endless', name: 'Endless', command: 'endless' }],
      },
    },
    code: `
import { setTimeout as sleep } from 'node:timers/promises';
import { defineCommand, ok } from 'svc-platform/sdk';
let running = 0, stopped = 0;
export const endless = defineCommand(async (ctx) => {
  running++;
  ctx.progress(1, 2, 'started');
  try {
    await sleep(600_000, undefined, { signal: ctx.signal });
  } catch (error) {
    stopped++;
    throw error;
  } finally {
    running--;
  }
  return ok('never');
});
export const slow = defineCommand(async () => {
  await sleep(100);
  return ok('done');
});
export const state = defineCommand(async () => ok({ running, stopped }));
`,
  },
};

/** Calls a command that does not end, and resolves once it runs. */
async function startEndless(
  client: Client,
  signal = new AbortController().signal,
): Promise<{ ended: Promise<unknown> }> {
  const { promise: started, resolve } = Promise.withResolvers<void>();
  const options = { signal, onprogress: () => resolve(), timeout: 60_000 };
  const ended = client
    .callTool({ name: 'acme_shop_endless', arguments: {} }, options)
    .catch((error) => error);
  await started;
  return { ended };
}

test.each(ERAS)('a cancelled call stops the command: %j', TIMEOUT, async (era) => {
  const { connect } = await startMcp(STOPPABLE);
  const client = await connect(undefined, era);
  const control = new AbortController();
  const { ended } = await startEndless(client, control.signal);
  control.abort(new Error('the user has stopped it'));
  expect(await ended).toBeInstanceOf(Error);
  await expect
    .poll(() => callTool(client, 'acme_shop_state'), { interval: 200 })
    .toMatchObject({ running: 0, stopped: 1 });
});

test.each(ERAS)('a cancelled prompt or resource stops its command: %j', TIMEOUT, async (era) => {
  const { connect } = await startMcp(STOPPABLE);
  const client = await connect(undefined, era);
  const reads = [
    (options: RequestOptions) => client.getPrompt({ name: 'acme_shop_endless' }, options),
    (options: RequestOptions) => client.readResource({ uri: 'shop://endless' }, options),
  ];
  for (const [index, read] of reads.entries()) {
    const control = new AbortController();
    const { promise: started, resolve } = Promise.withResolvers<void>();
    const ended = read({ signal: control.signal, onprogress: () => resolve() }).catch((error) => error);
    await started;
    control.abort(new Error('the user has stopped it'));
    expect(await ended).toBeInstanceOf(Error);
    await expect
      .poll(() => callTool(client, 'acme_shop_state'), { interval: 200, timeout: 10_000 })
      .toMatchObject({ running: 0, stopped: index + 1 });
  }
});

test('a cancelled wait for the result of a task releases its permit', TIMEOUT, async () => {
  const { connect } = await startMcp({
    config: { gateway: { mcp: { concurrentCalls: 1 } } },
    project: {
      workflows: {
        nap: {
          ...{ id: 'nap', mcp: { expose: true } },
          jobs: { main: { steps: [{ id: 'nap', uses: 'wait', with: { ms: 600_000 } }] } },
        },
      },
    },
  });
  const client = await connect();
  const { taskId } = await startTask(client, 'workflow_nap');
  /** Returns "waits" after the first progress, or the code of the refusal. */
  const wait = (signal: AbortSignal): Promise<string> => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const options = { signal, onprogress: () => resolve('waits') };
    request(client, 'tasks/result', { taskId }, options).catch(({ data }) => resolve(data?.code));
    return promise;
  };
  const first = new AbortController();
  const second = new AbortController();
  expect(await wait(first.signal)).toBe('waits');
  expect(await wait(second.signal)).toBe('CONCURRENT_LIMIT_EXCEEDED');
  first.abort();
  await expect.poll(() => wait(second.signal), { timeout: 10_000 }).toBe('waits');
  second.abort();
});

test('a result that is no stream is sent at once, with its length', TIMEOUT, async () => {
  const { gateway } = await startMcp();
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const { params, ...message } = toolCall('deliveries_search');
  const reply = await post(gateway.url, { ...message, params: { ...params, _meta } }, undefined, {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'deliveries_search',
  });
  expect(reply.headers.get('content-type')).toMatch(/^application\/json/);
  const text = await reply.text();
  expect(reply.headers.get('content-length')).toBe(String(Buffer.byteLength(text)));
  expect(JSON.parse(text)).toMatchObject({ result: { structuredContent: { result: { items: [] } } } });
});

test('a message cancels only the call of its own caller and session', async () => {
  const calls = new CallsInFlight();
  const callOf = (hostId: string, connection: string | null) =>
    ({ caller: { hostId }, connection, signal: new AbortController().signal }) as never;
  const { promise: signal, resolve } = Promise.withResolvers<AbortSignal>();
  const { promise: end, resolve: finish } = Promise.withResolvers<void>();
  const running = calls.run(callOf('agent', 'plain-1'), 7, async (given) => {
    resolve(given);
    await end;
  });
  const cancel = (requestId: unknown, of: never) =>
    calls.cancelBy({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } }, of);
  cancel(7, callOf('agent', 'plain-2'));
  cancel(7, callOf('other', 'plain-1'));
  cancel(7, callOf('agent', null));
  cancel('7', callOf('agent', 'plain-1'));
  cancel({}, callOf('agent', 'plain-1'));
  expect((await signal).aborted).toBe(false);
  cancel(7, callOf('agent', 'plain-1'));
  expect((await signal).aborted).toBe(true);
  finish();
  await running;
});

test('a client that disconnects stops its command, in every revision', TIMEOUT, async () => {
  const { connect } = await startMcp(STOPPABLE);
  for (const [index, era] of ERAS.entries()) {
    const client = await connect(undefined, era);
    const { ended } = await startEndless(client);
    await client.close();
    await ended;
    const watcher = await connect();
    await expect
      .poll(() => callTool(watcher, 'acme_shop_state'))
      .toMatchObject({ running: 0, stopped: index + 1 });
  }
});

test.each(ERAS)('lists have pages: %j', TIMEOUT, async (era) => {
  const commands = Array.from({ length: 120 }, (_, n) => ({
    ...{ id: `c${n}`, handler: 'shop.js#state', mcp: { expose: true, readOnly: true } },
  }));
  const { connect } = await startMcp({ project: { ...STOPPABLE.project, manifest: { commands } } });
  const client = await connect(undefined, era);
  const names: string[] = [];
  let cursor: string | undefined;
  let pages = 0;
  do {
    const raw: AnyJson = await client.request({ method: 'tools/list', params: cursor ? { cursor } : {} });
    names.push(...raw.tools.map(({ name }: AnyJson) => name));
    cursor = raw.nextCursor;
    pages++;
  } while (cursor && pages < 10);
  expect(pages).toBe(2);
  expect(new Set(names).size).toBe(names.length);
  expect(names.filter((name) => name.startsWith('acme_shop_c'))).toHaveLength(120);
  await expect(client.request({ method: 'tools/list', params: { cursor: 'none' } })).rejects.toThrow(
    /cursor/,
  );
});

test('1,000 parallel calls get results or limits, and others keep their service', TIMEOUT, async () => {
  const { gateway, connect } = await startMcp(STOPPABLE);
  const other = await connect(MEMBER_TOKEN);
  const statuses = new Map<string, number>();
  const count = (outcome: string): void => void statuses.set(outcome, (statuses.get(outcome) ?? 0) + 1);
  let open = true;
  const flood = Promise.all(
    Array.from({ length: 1000 }, async (_, id) => {
      const reply = await post(gateway.url, toolCall('acme_shop_slow', {}, id));
      if (reply.status !== 200) return count(String(reply.status));
      const { id: answered, result } = await messageOf(reply);
      expect(answered).toBe(id);
      count(result.isError ? errorIn(result).error.code : 'ok');
    }),
  ).finally(() => {
    open = false;
  });
  let served = 0;
  while (open) {
    await callTool(other, 'workflows_list');
    served++;
    await sleep(20);
  }
  await flood;
  expect([...statuses.values()].reduce((sum, one) => sum + one, 0)).toBe(1000);
  const allowed = ['ok', 'CONCURRENT_LIMIT_EXCEEDED', 'RATE_LIMIT_EXCEEDED', '429'];
  expect([...statuses.keys()].filter((outcome) => !allowed.includes(outcome))).toEqual([]);
  expect(statuses.get('ok')).toBeGreaterThan(0);
  expect(statuses.get('CONCURRENT_LIMIT_EXCEEDED')).toBeGreaterThan(0);
  expect(served).toBeGreaterThan(0);
});
