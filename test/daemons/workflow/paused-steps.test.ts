import { expect, test } from 'vitest';
import { decideStep, pauseRun, resumeRun } from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { describeOnStores } from '../../support/stores.ts';
import { callLedger } from './support/kept-ledger.ts';
import { LEDGER_CONFIG, type Ledger, startLedger } from './support/ledger.ts';
import { runAnotherLater } from './support/run-another.ts';
import { startWorkflow, type TestWorkflow } from './support/workflow.ts';

const POLL = { timeout: 20_000 };
const params = (runId: string) => ({ params: { runId: runId as never } });

/** A ledger that answers the path on `release`, as often as it was called. */
async function startHolding(name: string): Promise<{ ledger: Ledger; release: () => void }> {
  const ledger = await startLedger();
  const answers: Array<() => void> = [];
  ledger.answer(name, (_, response) => void answers.push(() => response.end('{}')));
  return { ledger, release: () => answers.splice(0).forEach((answer) => void answer()) };
}

const pausesAt = (it: TestWorkflow, id: string) =>
  expect.poll(() => it.run(id), POLL).toMatchObject({ status: 'waiting', pauseScope: 'run' });

describeOnStores('a paused run', (store) => {
  test.each([
    ['set', { v: 1 }, 'succeeded'],
    ['wait', { ms: 1e9 }, 'waiting'],
    ['approval', { message: 'Ship it?' }, 'waiting'],
    ['signal', { name: 'go' }, 'waiting'],
  ])('begins no step of the kind "%s" before it is resumed', async (uses, input, status) => {
    const { ledger, release } = await startHolding('slow');
    const it = await startWorkflow({ config: { ...LEDGER_CONFIG, ...(await store()) } });
    const id = await it.start({ steps: [callLedger(ledger, 'slow'), { id: 'next', uses, with: input }] });
    await expect.poll(() => ledger.count(`slow/${id}`)).toBe(1);
    await it.call(pauseRun, params(id));
    release();
    await pausesAt(it, id);
    await runAnotherLater(it);
    const statuses = async () => (await it.steps(id)).map((step) => step.status);
    expect(await statuses()).toEqual(['succeeded', 'pending']);
    await it.call(resumeRun, params(id));
    await expect.poll(statuses, POLL).toEqual(['succeeded', status]);
  });

  test('keeps a decision to retry that is made while another step is still in flight', async () => {
    const { ledger, release } = await startHolding('held');
    ledger.answer('pay', (_, response, nth) => void (nth > 1 && response.end('{}')));
    const workflow = { ...LEDGER_CONFIG.workflow, drainMs: 100 };
    const options = { dataDir: await tempDir(), config: { workflow, ...(await store()) } };
    const first = await startWorkflow(options);
    const id = await first.start({
      jobs: {
        paid: { steps: [callLedger(ledger, 'pay')] },
        held: { steps: [callLedger(ledger, 'held', { idempotencyKey: 'k' })] },
      },
    });
    await expect.poll(() => ledger.open).toBe(2);
    await first.close();
    const it = await startWorkflow(options);
    await expect.poll(async () => (await it.step(id, 'paid.pay')).status, POLL).toBe('waiting');
    await expect.poll(() => ledger.count(`held/${id}`), POLL).toBe(2);
    await it.call(pauseRun, params(id));
    const step = { params: { runId: id as never, stepId: 'paid.pay' } };
    await it.call(decideStep, { ...step, body: { action: 'retry' } as never });
    release();
    await pausesAt(it, id);
    expect(ledger.count(`pay/${id}`)).toBe(1);
    await it.call(resumeRun, params(id));
    await it.until(id, 'succeeded');
    expect(ledger.count(`pay/${id}`)).toBe(2);
  });
});

test('a run whose service stops during a step continues with the next steps after the next start', async () => {
  const { ledger, release } = await startHolding('slow');
  const options = { dataDir: await tempDir(), config: LEDGER_CONFIG };
  const first = await startWorkflow(options);
  const note = { id: 'note', uses: 'set', with: { v: 1 } };
  const nap = { id: 'nap', uses: 'wait', with: { ms: 1 } };
  const id = await first.start({ steps: [callLedger(ledger, 'slow'), note, nap] });
  await expect.poll(() => ledger.count(`slow/${id}`)).toBe(1);
  const closed = first.close();
  release();
  await closed;
  const it = await startWorkflow(options);
  await expect.poll(async () => (await it.step(id, 'main.note')).status, POLL).toBe('succeeded');
  await runAnotherLater(it);
  await it.until(id, 'succeeded');
  expect(ledger.count(`slow/${id}`)).toBe(1);
});
