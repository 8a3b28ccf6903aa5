import { expect, test, vi } from 'vitest';
import { sendSignal } from '../../../src/contracts/index.ts';
import { createClient, serviceHeaders } from '../../../src/http/index.ts';
import { seconds } from '../../../src/kit/time/duration.ts';
import { TEST_KEYS } from '../../support/daemon.ts';
import { describeOnStores } from '../../support/stores.ts';
import { startCode } from './support/code.ts';
import { FORM } from './support/form.ts';
import { cel, startWorkflow, type TestWorkflow } from './support/workflow.ts';

const paidSteps = (rules: object, wait = 0) => [
  ...(wait ? [{ id: 'first', uses: 'wait', with: { ms: wait } }] : []),
  { id: 'pay', uses: 'signal', with: { name: 'paid', timeoutMs: seconds(600), ...rules } },
];

/** Sends the signal `paid` as a service that passes the role of a caller on. */
function send(
  it: TestWorkflow,
  id: string,
  payload: unknown,
  role: 'viewer' | 'editor' | 'admin' | 'absent' | null = 'admin',
) {
  const client = createClient({ url: it.url, peer: 'workflow' });
  const caller = { namespaceId: 'default', hostId: 'ada', ...(role === 'absent' ? {} : { role }) };
  const headers = serviceHeaders(TEST_KEYS.internalSecret, caller);
  const params = { runId: id, name: 'paid' };
  return client.call(sendSignal, { params, body: { payload } } as never, { headers });
}

describeOnStores('forms of signals', (config) => {
  test('the waiting step shows form, senders and expiry; checked data is its payload', async () => {
    const it = await startWorkflow({ config: await config() });
    const approvers = { roles: ['editor'] };
    const id = await it.start({ steps: paidSteps({ form: FORM, approvers }) });
    await it.until(id, 'waiting');
    expect(await it.step(id, 'main.pay')).toMatchObject({
      waitingFor: { for: 'signal', name: 'paid', form: FORM, approvers },
      wakeAt: it.clock.now() + seconds(600),
    });
    const error = await send(it, id, { region: 'asia' }).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'VALIDATION_ERROR' });
    expect(error.details.issues.map(({ path }: { path: string }) => path)).toEqual([
      'payload.region',
      'payload.amount',
    ]);
    await expect(send(it, id, { region: 'eu', amount: 3 }, 'viewer')).rejects.toMatchObject({
      code: 'FORBIDDEN',
      message: expect.stringContaining('The signal "paid" needs the role editor'),
    });
    expect((await it.run(id)).status).toBe('waiting');
    await send(it, id, { region: 'eu', amount: 3 }, 'editor');
    await it.until(id, 'succeeded');
    expect((await it.step(id, 'main.pay')).output).toMatchObject({
      payload: { region: 'eu', amount: 3, note: 'none' },
    });
  });

  test('an early signal is checked on arrival, and the step takes it later', async () => {
    const it = await startWorkflow({ config: await config() });
    const rules = { form: FORM, approvers: { roles: ['admin'] } };
    const id = await it.start({ steps: paidSteps(rules, seconds(60)) });
    await it.until(id, 'waiting');
    await expect(send(it, id, {})).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    for (const role of ['absent', null, 'editor'] as const)
      await expect(send(it, id, { region: 'us', amount: 1 }, role)).rejects.toMatchObject({
        code: 'FORBIDDEN',
      });
    await send(it, id, { region: 'us', amount: 1 }, 'admin');
    // The run starts its timer again after it has read the signal.
    await vi.waitFor(async () => {
      it.clock.advance(seconds(60));
      expect((await it.run(id)).status).toBe('succeeded');
    }, 20_000);
    expect((await it.step(id, 'main.pay')).output).toMatchObject({
      payload: { region: 'us', amount: 1, note: 'none' },
    });
  });
});

const CEL_FORM = { type: 'object', properties: { region: { enum: cel('input.regions') } } };
const OTHER = { type: 'object', properties: { sum: { type: 'number' } } };

test.each([
  ['an expression in the form', { steps: paidSteps({ form: CEL_FORM }) }, 'form', 'no'],
  [
    'an expression in the name',
    { steps: paidSteps({ form: FORM, name: cel('input.name') }) },
    'name',
    'without',
  ],
  ['a form that is no object', { steps: paidSteps({ form: { type: 'string' } }) }, 'form', 'type: object'],
  ['an unusable form', { steps: paidSteps({ form: { ...FORM, required: 1 } }) }, 'form', 'JSON Schema'],
  ['unknown roles', { steps: paidSteps({ approvers: { roles: ['boss'] } }) }, 'approvers', 'must be {roles'],
  ['a second schema', { signals: { paid: OTHER }, steps: paidSteps({ form: FORM }) }, 'form', 'signals.paid'],
  [
    'second approvers',
    {
      signalApprovers: { paid: { roles: ['admin'] } },
      steps: paidSteps({ approvers: { roles: ['editor'] } }),
    },
    'approvers',
    'signalApprovers.paid',
  ],
])('%s of a signal step is refused with the definition', async (_what, written, key, message) => {
  const it = await startWorkflow();
  const error = await it.start(written).catch((thrown) => thrown);
  expect(error).toMatchObject({ code: 'VALIDATION_ERROR' });
  expect(error.details.issues).toContainEqual(
    expect.objectContaining({
      path: expect.stringMatching(new RegExp(`steps\\[0\\]\\.with\\.${key}$`)),
      message: expect.stringContaining(message),
    }),
  );
});

test('two steps that wait for one signal have one form', async () => {
  const it = await startWorkflow();
  const [pay] = paidSteps({ form: FORM });
  const second = (form: object) => ({ ...pay, id: 'again', with: { name: 'paid', form } });
  await expect(it.start({ steps: [pay, second(OTHER)] })).rejects.toMatchObject({
    message: expect.stringContaining('differs from another step'),
  });
  const id = await it.start({
    steps: [pay, { ...pay, id: 'again', with: { name: 'paid' } }, { ...second(FORM), id: 'last' }],
  });
  await expect(send(it, id, {})).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
  for (let n = 0; n < 3; n++) await send(it, id, { region: 'eu', amount: 1 });
  await it.until(id, 'succeeded');
});

test('a step that waits for a signal shows the schema of its payload as form', async () => {
  const it = await startWorkflow();
  const paid = { type: 'object', properties: { amount: { type: 'number' } } };
  const steps = [{ id: 'pay', uses: 'signal', with: { name: 'paid', timeoutMs: seconds(60) } }];
  const id = await it.start({ signals: { paid }, steps });
  await it.until(id, 'waiting');
  expect((await it.step(id, 'main.pay')).waitingFor).toEqual({ for: 'signal', name: 'paid', form: paid });
});

test('a function waits for a signal with the schema and senders of the manifest entry', async () => {
  const it = await startCode(
    `export const order = defineWorkflow({ id: 'order', async run(ctx, { options }) {
      await ctx.sleep('first', 60_000);
      return (await ctx.waitForSignal('paid', options)).payload;
    } });`,
    {
      workflows: [
        {
          ...{ id: 'order', handler: 'flows.js#order', signals: { paid: FORM } },
          signalApprovers: { paid: { roles: ['editor'] } },
        },
      ],
    },
  );
  const id = await it.begin('order');
  await it.until(id, 'waiting');
  await expect(send(it, id, {})).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
  const fits = { region: 'eu', amount: 2 };
  await expect(send(it, id, fits, 'viewer')).rejects.toMatchObject({ code: 'FORBIDDEN' });
  await send(it, id, fits, 'editor');
  await it.wakeAfter(seconds(60));
  const { output } = await it.until(id, 'succeeded');
  expect(output).toEqual({ ...fits, note: 'none' });
  const own = await it.begin('order', { options: { form: FORM } });
  await it.until(own, 'waiting');
  await it.wakeAfter(seconds(60));
  const { error } = await it.until(own, 'failed');
  expect(JSON.stringify(error)).toContain('takes no \\"form\\"');
});
