import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { decideApproval, startRun } from '../../src/contracts/index.ts';
import { days } from '../../src/kit/time/duration.ts';
import { createTestHost } from '../../src/testing/index.ts';
import { startLedger } from '../daemons/workflow/support/ledger.ts';
import { startProcess } from '../daemons/workflow/support/process.ts';
import { completion } from '../support/openai-server.ts';
import { copyExample } from './support/copied-example.ts';

const PLUGIN = join(import.meta.dirname, '../../examples/plugins/support-agent');
const POLL = { timeout: 60_000 };

interface ChatMessage {
  role: string;
  content: string;
}

const toolCall = (id: string, name: string, args: object) => ({
  ...{ id, type: 'function' },
  function: { name, arguments: JSON.stringify(args) },
});

/** Returns the next message of a model that finds the order, asks for a refund, and then reports the result. */
function nextMessage(messages: readonly ChatMessage[]): Record<string, unknown> {
  const order = messages[1]!.content;
  const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
  if (results.length === 0) return { content: null, tool_calls: [toolCall('c1', 'find_order', { order })] };
  const refund = { order, cents: 1900, reason: 'It broke.' };
  if (results.length === 1) return { content: null, tool_calls: [toolCall('c2', 'refund', refund)] };
  return { content: `${results[1]}` };
}

/**
 * Starts a server that is both the model and the shop. The question of a customer is the id of the order. `isSilent`
 * returns whether the `nth` request of this kind for an order gets no answer.
 */
async function startServer(isSilent: (what: string, order: string, nth: number) => boolean = () => false) {
  const ledger = await startLedger();
  const asked: Array<{ what: string; order: string; messages?: ChatMessage[] }> = [];
  const take = (
    entry: (typeof asked)[number],
    response: ServerResponse,
    answer: Record<string, unknown>,
  ): void => {
    asked.push(entry);
    const { what, order } = entry;
    const nth = asked.filter((other) => other.what === what && other.order === order).length;
    if (isSilent(what, order, nth)) return;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(answer));
  };
  const lastBody = () => JSON.parse(ledger.entries.at(-1)!.body);
  ledger.answer('v1', (_, response) => {
    const { messages } = lastBody() as { messages: ChatMessage[] };
    const order = messages[1]!.content;
    take({ what: `think-${messages.length}`, order, messages }, response, completion(nextMessage(messages)));
  });
  ledger.answer('customers', ({ url }, response) => {
    const [, , customer, list, id] = url!.split('/');
    expect(customer).toBe('c-1');
    if (list === 'orders') take({ what: 'find', order: id! }, response, { id, item: 'mug', cents: 1900 });
    else take({ what: 'refund', order: lastBody().order }, response, { refunded: true });
  });
  const adapters = { llm: { baseUrl: `${ledger.url}/v1`, models: { default: 'm' } } };
  return { ledger, asked, adapters };
}

async function startAgent() {
  const { ledger, asked, adapters } = await startServer();
  const fetch = async (request: Request) => {
    const { method } = request;
    const body = method === 'GET' ? null : await request.text();
    return globalThis.fetch(ledger.url + new URL(request.url).pathname, { method, body });
  };
  const host = await createTestHost({ plugin: PLUGIN, adapters, fetch });
  onTestFinished(() => host.close());
  const { id } = await host.workflow('support-agent', { customer: 'c-1', question: 'o-1' });
  expect(await host.settled(id)).toMatchObject({ status: 'waiting' });
  return { host, id, asked, settled: () => host.settled(id) };
}

const REVIEW = 'main.review@2-0';

test('the agent finds the order, and refunds after a person has agreed', async () => {
  const { host, id, asked, settled } = await startAgent();
  await host.approve(id, REVIEW);
  expect(await settled()).toMatchObject({
    status: 'succeeded',
    output: { answer: '{"refunded":true}', turns: 3 },
  });
  expect(asked.map(({ what }) => what)).toEqual(['think-2', 'find', 'think-4', 'refund', 'think-6']);
  expect(asked.at(-1)!.messages!.map(({ role, content }) => [role, content])).toEqual([
    ['system', expect.stringContaining('A person decides about refunds.')],
    ['user', 'o-1'],
    ['assistant', null],
    ['tool', '{"id":"o-1","item":"mug","cents":1900}'],
    ['assistant', null],
    ['tool', '{"refunded":true}'],
  ]);
});

test('a refusal reaches the model with the comment of the person, and nothing is refunded', async () => {
  const { host, id, asked, settled } = await startAgent();
  await host.approve(id, REVIEW, { approved: false, comment: 'Send a photo first.' });
  expect(await settled()).toMatchObject({ output: { answer: 'Refused: Send a photo first.' } });
  expect(asked.map(({ what }) => what)).not.toContain('refund');
});

test('after a day without an answer the model is told that the refund is refused', async () => {
  const { host, settled } = await startAgent();
  host.advance(days(1));
  expect(await settled()).toMatchObject({ output: { answer: 'Refused: no person answered within a day.' } });
});

/** Awaits of the loop before and after the answer of the person. */
const BEFORE = ['think-2', 'find', 'think-4', 'review'];
const AWAITS = [...BEFORE, 'refund', 'think-6'];

test('after kill -9 at any await the agent answers, and repeats only what it had not ended', async () => {
  // The run for the order that is named like an await stops there: its first request gets no answer.
  const { ledger, asked, adapters } = await startServer((what, order, nth) => what === order && nth === 1);
  const dataDir = await copyExample('support-agent', { network: [new URL(ledger.url).host] });
  const config = {
    adapters,
    pluginConfig: { 'support-agent': { shopUrl: ledger.url } },
    // A run that is stopped in a step occupies a process.
    execution: { worker: { maxProcesses: AWAITS.length + 1 } },
  };
  let daemon = await startProcess(dataDir, config);
  const start = async (place: string) => {
    const body = { workflowId: 'support-agent', input: { customer: 'c-1', question: place } };
    return [place, (await daemon.call(startRun, { body })).run.id] as const;
  };
  const runs = await Promise.all(AWAITS.map(start));
  const approve = async (id: string) => {
    await expect.poll(async () => (await daemon.run(id)).waitingReason, POLL).toBe('approval');
    const params = { runId: id as never, stepId: REVIEW };
    await daemon.call(decideApproval, { params, body: { approved: true } });
  };
  const askedFor = (place: string) => asked.filter(({ order }) => order === place).map(({ what }) => what);
  const atAwait = async ([place, id]: readonly [string, string]) => {
    if (place === 'review') {
      await expect.poll(async () => (await daemon.run(id)).waitingReason, POLL).toBe('approval');
      return;
    }
    if (!BEFORE.includes(place)) await approve(id);
    await expect.poll(() => askedFor(place), POLL).toContain(place);
  };
  await Promise.all(runs.map(atAwait));
  await daemon.kill();
  daemon = await startProcess(dataDir, config);
  const end = async ([place, id]: readonly [string, string]) => {
    if (BEFORE.includes(place)) await approve(id);
    await expect.poll(async () => (await daemon.run(id)).finishedAt, POLL).not.toBeNull();
    expect(await daemon.run(id), place).toMatchObject({
      status: 'succeeded',
      output: { answer: '{"refunded":true}' },
    });
    const inOrder = ['think-2', 'find', 'think-4', 'refund', 'think-6'];
    expect(askedFor(place)).toEqual(inOrder.flatMap((what) => (what === place ? [what, what] : [what])));
  };
  await Promise.all(runs.map(end));
  const keys = ledger.entries.filter(({ name }) => name === 'customers/c-1/refunds').map(({ key }) => key);
  expect(new Set(keys).size).toBe(AWAITS.length);
}, 180_000);
