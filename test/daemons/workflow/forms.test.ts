import { expect, test } from 'vitest';
import { decideApproval, startRun } from '../../../src/contracts/index.ts';
import { createClient, serviceHeaders } from '../../../src/http/index.ts';
import { seconds } from '../../../src/kit/time/duration.ts';
import { TEST_KEYS } from '../../support/daemon.ts';
import { describeOnStores } from '../../support/stores.ts';
import { startCode } from './support/code.ts';
import { FORM } from './support/form.ts';
import { asDefinition, cel, startWorkflow, type TestWorkflow } from './support/workflow.ts';

const ask = (input: object) => ({
  steps: [
    { id: 'ask', uses: 'approval', with: { message: 'Ship?', ...input } },
    { id: 'use', uses: 'set', with: { got: cel('steps.ask.output.?data.orValue(null)') } },
  ],
});

/** Answers as a service that passes the role of a caller on. `absent`: a call without a gateway. */
function answer(
  it: TestWorkflow,
  id: string,
  body: object,
  role: 'viewer' | 'editor' | 'admin' | 'absent' | null = 'admin',
) {
  const client = createClient({ url: it.url, peer: 'workflow' });
  const known = role === 'absent' ? {} : { role };
  const headers = serviceHeaders(TEST_KEYS.internalSecret, {
    namespaceId: 'default',
    hostId: 'ada',
    ...known,
  });
  const params = { runId: id, stepId: 'main.ask' };
  return client.call(decideApproval, { params, body } as never, { headers });
}

describeOnStores('forms of approvals', (config) => {
  test('the waiting step shows form, approvers and expiry; checked data is its output', async () => {
    const it = await startWorkflow({ config: await config() });
    const approvers = { roles: ['editor'] };
    const id = await it.start(ask({ form: FORM, approvers, timeoutMs: seconds(60) }));
    await it.until(id, 'waiting');
    expect(await it.step(id, 'main.ask')).toMatchObject({
      waitingFor: { for: 'approval', message: 'Ship?', form: FORM, approvers },
      wakeAt: it.clock.now() + seconds(60),
    });
    await answer(it, id, { approved: true, comment: 'fine', data: { region: 'eu', amount: 3 } });
    await it.until(id, 'succeeded');
    const data = { region: 'eu', amount: 3, note: 'none' };
    expect((await it.step(id, 'main.ask')).output).toEqual({
      approved: true,
      by: 'ada',
      comment: 'fine',
      data,
    });
    expect((await it.step(id, 'main.use')).output).toEqual({ got: data });
  });
});

test.each([
  [undefined, ['data.region', 'data.amount']],
  [{ region: 'asia', amount: 3 }, ['data.region']],
  [{ region: 'eu', amount: 0.5 }, ['data.amount']],
  [{ region: 'eu', amount: 0 }, ['data.amount']],
  [{ region: 'eu', amount: 1, more: true }, ['data.more']],
  ['eu', ['data']],
])('the data %j is refused by field, and the step waits on', async (data, paths) => {
  const it = await startWorkflow();
  const id = await it.start(ask({ form: FORM }));
  await it.until(id, 'waiting');
  const error = await answer(it, id, { approved: true, data }).catch((thrown) => thrown);
  expect(error).toMatchObject({ code: 'VALIDATION_ERROR' });
  expect(error.details.issues.map(({ path }: { path: string }) => path)).toEqual(paths);
  expect((await it.run(id)).status).toBe('waiting');
});

test('a refusal needs no data, and an approval without a form takes none', async () => {
  const it = await startWorkflow();
  const refused = await it.start(ask({ form: FORM }));
  await it.until(refused, 'waiting');
  await answer(it, refused, { approved: false });
  await it.until(refused, 'failed');
  const plain = await it.start(ask({}));
  await it.until(plain, 'waiting');
  await expect(answer(it, plain, { approved: true, data: {} })).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
    message: expect.stringContaining('has no form'),
  });
});

test('only the named roles and higher ones may answer, whatever they answer', async () => {
  const it = await startWorkflow();
  const id = await it.start(ask({ approvers: { roles: ['editor'] } }));
  await it.until(id, 'waiting');
  for (const role of ['absent', null, 'viewer'] as const)
    for (const approved of [true, false])
      await expect(answer(it, id, { approved }, role)).rejects.toMatchObject({
        code: 'FORBIDDEN',
        message: expect.stringContaining('needs the role editor'),
        details: { neededRoles: ['editor'], role: role === 'absent' ? null : role },
      });
  await answer(it, id, { approved: true }, 'admin');
  await it.until(id, 'succeeded');
});

test('a call without the service key cannot claim a role', async () => {
  const it = await startWorkflow();
  const id = await it.start(ask({ approvers: { roles: ['editor'] } }));
  await it.until(id, 'waiting');
  const reply = await fetch(`${it.url}/api/v1/workflows/runs/${id}/approvals/main.ask`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-svc-role': 'admin' },
    body: JSON.stringify({ approved: true }),
  });
  expect(reply.status).toBe(403);
});

test('the form can be computed, and a computed form that is none fails the step', async () => {
  const it = await startWorkflow();
  const form = {
    type: 'object',
    properties: { region: { enum: cel('input.regions') } },
    required: ['region'],
  };
  const id = await it.start(ask({ form }), { input: { regions: ['eu', 'us'] } });
  await it.until(id, 'waiting');
  await expect(answer(it, id, { approved: true, data: { region: 'asia' } })).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
  });
  await answer(it, id, { approved: true, data: { region: 'us' } });
  await it.until(id, 'succeeded');
  const broken = await it.start(ask({ form: cel('input.form') }), { input: { form: { type: 'string' } } });
  await it.until(broken, 'failed');
  expect((await it.step(broken, 'main.ask')).error).toMatchObject({
    code: 'VALIDATION_ERROR',
    message: expect.stringContaining('type: object'),
  });
});

test.each([
  [{ form: { type: 'array' } }, 'with.form: must be a JSON Schema with type: object'],
  [
    { form: { type: 'object', properties: { a: { type: 'nothing' } } } },
    'is not a JSON Schema that can be used',
  ],
  [{ form: { type: 'object', description: 'x'.repeat(40_000) } }, 'the limit is 32768'],
  [{ approvers: { roles: ['boss'] } }, 'with.approvers: must be {roles'],
  [{ approvers: { roles: [] } }, 'with.approvers: must be {roles'],
  [{ approvers: {} }, 'with.approvers: must be {roles'],
])('the definition of case %# is refused, with the reason', async (input, message) => {
  const it = await startWorkflow();
  const body = { definition: asDefinition(ask(input)), input: {} };
  await expect(it.call(startRun, { body } as never)).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
    message: expect.stringContaining(message),
  });
});

test('a function gets the data of its approval', async () => {
  const it = await startCode(
    `export const order = defineWorkflow({ id: 'order', async run(ctx) {
      const { data, by } = await ctx.approval('ask', { form: ${JSON.stringify(FORM)}, approvers: { roles: ['admin'] } });
      return { data, by };
    } });`,
    { workflows: [{ id: 'order', handler: 'flows.js#order' }] },
  );
  const id = await it.begin('order');
  await it.until(id, 'waiting');
  expect((await it.step(id, 'main.ask')).waitingFor).toMatchObject({
    form: FORM,
    approvers: { roles: ['admin'] },
  });
  await expect(answer(it, id, { approved: true, data: { region: 'eu' } })).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
  });
  await answer(it, id, { approved: true, data: { region: 'eu', amount: 2 } });
  const { output } = await it.until(id, 'succeeded');
  expect(output).toEqual({ by: 'ada', data: { region: 'eu', amount: 2, note: 'none' } });
});
