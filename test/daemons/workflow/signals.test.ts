import { describe, expect, test, vi } from 'vitest';
import { decideStep, decideSteps, sendSignal, startRun } from '../../../src/contracts/index.ts';
import { type CodeWorkflow, startCode } from './support/code.ts';
import { startWorkflow, type TestWorkflow } from './support/workflow.ts';

const MIB = 1024 * 1024;
const wait = (id: string, name = 'go') => ({ id, uses: 'signal', with: { name } });

/** The error that the endpoint answers, or undefined. */
async function send(
  it: TestWorkflow,
  id: string,
  body: { payload?: unknown; idempotencyKey?: string },
  name = 'go',
): Promise<{ code: string; status: number; message: string; details: Record<string, unknown> } | undefined> {
  return it
    .call(sendSignal, { params: { runId: id as never, name }, body: { payload: null, ...body } as never })
    .then(() => undefined)
    .catch((error) => error);
}

test('a signal of an agent is taken only by steps that allow agents, also if another signal came first', async () => {
  const it = await startWorkflow();
  const id = await it.start({
    steps: [
      { id: 'open', uses: 'signal', with: { name: 'go', agents: true } },
      { id: 'closed', uses: 'signal', with: { name: 'go' } },
    ],
  });
  await it.until(id, 'waiting');
  const bothSent = [1, 2].map((payload) =>
    it.services.runs.signal('default', id, 'go', payload, { via: 'agent', by: 'agent' }),
  );
  await Promise.allSettled(bothSent);
  await vi.waitFor(async () => expect((await it.step(id, 'main.open')).status).toBe('succeeded'));
  await it.until(id, 'waiting');
  expect((await it.step(id, 'main.closed')).status).toBe('waiting');
  expect(await send(it, id, { payload: 3 })).toBeUndefined();
  await it.until(id, 'succeeded');
  expect((await it.step(id, 'main.closed')).output).toMatchObject({ payload: 3 });
});

describe('a payload that a step could not hand on', () => {
  test('is 413 at once, and the run goes on waiting', async () => {
    const it = await startWorkflow();
    const id = await it.start({ steps: [wait('s')] });
    await it.until(id, 'waiting');
    expect(await send(it, id, { payload: 'x'.repeat(3 * MIB) })).toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      status: 413,
      details: { limit: MIB },
    });
    expect((await it.run(id)).status).toBe('waiting');
    // Its quotes, its name and its time are handed on with it.
    const room = MIB - JSON.stringify({ payload: '', receivedAt: it.clock.now(), by: 'anonymous' }).length;
    expect(await send(it, id, { payload: 'x'.repeat(room + 1) })).toMatchObject({ status: 413 });
    expect(await send(it, id, { payload: 'x'.repeat(room) })).toBeUndefined();
    await it.until(id, 'succeeded');
  });

  test('is 413 for a decision too', async () => {
    const it = await startWorkflow();
    const id = await it.start({ steps: [wait('s')] });
    await it.until(id, 'waiting');
    const body = { action: 'succeed', output: 'x'.repeat(MIB) };
    const decided = it.call(decideStep, { params: { runId: id as never, stepId: 'main.s' }, body } as never);
    await expect(decided).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE', status: 413 });
    await expect(it.call(decideSteps, { body } as never)).rejects.toMatchObject({ status: 413 });
  });
});

describe('a signal with an idempotency key', () => {
  test('is sent once, by header or field, also when a step took it or the run has ended', async () => {
    const it = await startWorkflow();
    const id = await it.start({ steps: [wait('one'), wait('two')] });
    await it.until(id, 'waiting');
    const keyed = { payload: { a: 1, b: 2 }, idempotencyKey: 'k' };
    expect(await send(it, id, keyed)).toBeUndefined();
    await expect.poll(async () => (await it.step(id, 'main.one')).status).toBe('succeeded');
    const byHeader = await it.fetch(`/api/v1/workflows/runs/${id}/signals/go`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'k' },
      body: JSON.stringify({ payload: { b: 2, a: 1 } }),
    });
    expect(byHeader.status).toBe(200);
    expect((await it.step(id, 'main.two')).status).toBe('waiting');
    expect((await it.eventTypes(id)).filter((type) => type === 'signal.received')).toHaveLength(1);

    expect(await send(it, id, { payload: 2, idempotencyKey: 'other' })).toBeUndefined();
    await it.until(id, 'succeeded');
    expect(await send(it, id, keyed)).toBeUndefined();
    expect(await send(it, id, { payload: 3 })).toMatchObject({ code: 'CONFLICT' });
  });

  test('is 409 for another signal or payload, and free for another run', async () => {
    const it = await startWorkflow();
    const [one, two] = [await it.start({ steps: [wait('s')] }), await it.start({ steps: [wait('s')] })];
    for (const id of [one, two]) await it.until(id, 'waiting');
    const keyed = { payload: 1, idempotencyKey: 'k' };
    expect(await send(it, one, keyed)).toBeUndefined();
    for (const [body, name] of [
      [{ ...keyed, payload: 2 }, 'go'],
      [keyed, 'stop'],
    ] as const)
      expect(await send(it, one, body, name)).toMatchObject({
        code: 'CONFLICT',
        message: expect.stringContaining('idempotency key'),
      });
    expect(await send(it, two, keyed)).toBeUndefined();
  });
});

describe('a signal with a schema', () => {
  const paid = {
    type: 'object',
    properties: { amount: { type: 'number' }, currency: { type: 'string', default: 'EUR' } },
    required: ['amount'],
  };

  test('takes a payload that fits, with its defaults, and refuses any other with the place of the fault', async () => {
    const it = await startWorkflow();
    const id = await it.start({
      id: 'shop',
      // A pattern is checked in a thread.
      signals: { paid, note: { type: 'string', pattern: '^n' } },
      jobs: { main: { steps: [wait('paid', 'paid'), wait('note', 'note'), wait('free', 'free')] } },
    });
    await it.until(id, 'waiting');
    expect(await send(it, id, { payload: { amount: 'much' } }, 'paid')).toMatchObject({
      code: 'VALIDATION_ERROR',
      status: 400,
      details: { issues: [{ path: 'payload.amount' }] },
    });
    expect(await send(it, id, { payload: {} }, 'paid')).toMatchObject({
      details: { issues: [{ path: 'payload.amount' }] },
    });
    expect(await send(it, id, { payload: 'x' }, 'note')).toMatchObject({
      code: 'VALIDATION_ERROR',
      details: { issues: [{ path: 'payload' }] },
    });
    expect((await it.run(id)).status).toBe('waiting');
    expect(await send(it, id, { payload: { amount: 3 } }, 'paid')).toBeUndefined();
    expect(await send(it, id, { payload: 'nice' }, 'note')).toBeUndefined();
    expect(await send(it, id, { payload: [1] }, 'free')).toBeUndefined();
    await it.until(id, 'succeeded');
    expect((await it.step(id, 'main.paid')).output).toMatchObject({
      payload: { amount: 3, currency: 'EUR' },
    });
  });

  test('that is no JSON Schema is a fault of the definition, at its path', async () => {
    const it = await startWorkflow();
    const definition = {
      id: 'shop',
      signals: { paid: { $ref: '#/nowhere' } },
      jobs: { main: { steps: [wait('s')] } },
    };
    await expect(it.call(startRun, { body: { definition } as never })).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      details: { issues: [{ path: 'signals.paid' }] },
    });
  });
});

describe('a signal to a workflow in code', () => {
  const SOURCE = `
    export const shop = defineWorkflow({
      id: 'shop',
      signals: { paid: z.object({ amount: z.coerce.number().positive(), at: z.iso.datetime().transform((text) => new Date(text)).optional() }) },
      async run(ctx) {
        const { payload } = await ctx.waitForSignal('paid');
        const { payload: note } = await ctx.waitForSignal('note');
        return { amount: payload.amount, isDate: payload.at instanceof Date, note };
      },
    });`;

  async function startShop(manifest: object = {}): Promise<{ it: CodeWorkflow; id: string }> {
    const it = await startCode(SOURCE, {
      workflows: [{ id: 'shop', handler: 'flows.js#shop', ...manifest }],
    });
    const id = await it.begin('shop');
    await it.until(id, 'waiting');
    return { it, id };
  }

  test('is held against the schema in its code, which also makes what the function gets', async () => {
    const { it, id } = await startShop();
    expect(await send(it, id, { payload: { amount: -1 } }, 'paid')).toMatchObject({
      code: 'VALIDATION_ERROR',
      status: 400,
      details: { issues: [{ path: 'payload.amount' }] },
    });
    const payload = { amount: '12', at: '2030-01-01T00:00:00Z' };
    expect(await send(it, id, { payload }, 'paid')).toBeUndefined();
    await expect.poll(() => it.states(id)).toContain('note waiting');
    expect((await it.step(id, 'main.paid')).output).toMatchObject({ payload });
    const { describer } = it.services.plugins;
    describer.input = () =>
      Promise.reject(new Error('a signal that the code does not list costs no process'));
    expect(await send(it, id, { payload: 'any' }, 'note')).toBeUndefined();
    expect(it.logs.lines.some(({ message }) => String(message).includes('could not be checked'))).toBe(false);
    const { output } = await it.until(id, 'succeeded');
    expect(output).toEqual({ amount: 12, isDate: true, note: 'any' });
  });

  test('is taken for a repeat by its idempotency key also when the code has become stricter', async () => {
    const { it, id } = await startShop();
    const taken = { payload: { amount: 5 }, idempotencyKey: 'k' };
    expect(await send(it, id, taken, 'paid')).toBeUndefined();
    await it.rewrite(SOURCE.replace('.positive()', '.min(100)'));
    expect(await send(it, id, { ...taken, idempotencyKey: 'other' }, 'paid')).toMatchObject({ status: 400 });
    expect(await send(it, id, taken, 'paid')).toBeUndefined();
    expect(await send(it, id, { ...taken, payload: { amount: 6 } }, 'paid')).toMatchObject({
      code: 'CONFLICT',
    });
    expect((await it.eventTypes(id)).filter((type) => type === 'signal.received')).toHaveLength(1);
  });

  test("is held against the manifest's JSON Schema too", async () => {
    const { it, id } = await startShop({ signals: { note: { type: 'string' } } });
    expect(await send(it, id, { payload: 7 }, 'note')).toMatchObject({
      code: 'VALIDATION_ERROR',
      details: { issues: [{ path: 'payload' }] },
    });
  });
});
