import { describe, expect, test } from 'vitest';
import { listRunLogs, sendSignal } from '../../../src/contracts/index.ts';
import { days } from '../../../src/kit/time/duration.ts';
import { tempDir } from '../../support/daemon.ts';
import { openEngine } from './support/engine.ts';
import { LEDGER_CONFIG, startLedger } from './support/ledger.ts';
import { cel, startWorkflow } from './support/workflow.ts';

describe('times beyond the range of the clock', () => {
  test.each([
    ['wait', { ms: 1e300 }, /"ms" must be a number of milliseconds/],
    ['wait', { until: 1e300 }, /"until" must be/],
    ['signal', { name: 'go', timeoutMs: 1e300 }, /"timeoutMs" must be/],
    ['approval', { timeoutMs: -1 }, /"timeoutMs" must be/],
  ])('%s %j fails its step', async (uses, input, message) => {
    const it = await startWorkflow();
    const run = await it.until(await it.start({ steps: [{ uses, with: input }] }), 'failed');
    expect(run.error?.details).toMatchObject({
      error: { code: 'VALIDATION_ERROR', message: expect.stringMatching(message) },
    });
  });

  test('a fraction of a millisecond is waited for', async () => {
    const it = await startWorkflow();
    const id = await it.start({
      steps: [{ id: 'nap', uses: 'wait', with: { until: it.clock.now() + 0.5 } }],
    });
    await it.until(id, 'waiting');
    it.clock.advance(1);
    await it.services.engine.tick();
    await it.until(id, 'succeeded');
  });

  test('a Retry-After of a thousand years is limited to a day', async () => {
    const ledger = await startLedger();
    ledger.answer('busy', (_, response) =>
      response.writeHead(503, { 'retry-after': '99999999999999999999' }).end(),
    );
    const it = await startWorkflow({ config: LEDGER_CONFIG });
    const id = await it.start({
      steps: [{ id: 'ask', uses: 'http', with: { url: `${ledger.url}/busy` }, retry: { maxAttempts: 2 } }],
    });
    await it.until(id, 'waiting');
    expect((await it.step(id, 'main.ask')).wakeAt).toBe(it.clock.now() + days(1));
  });
});

describe('large values made by a small definition or a caller', () => {
  test('a definition of more than a million characters is refused, whatever its source', async () => {
    const it = await startWorkflow();
    const large = (v: string) => ({ id: 'large', jobs: { main: { steps: [{ uses: 'set', with: { v } }] } } });
    const tooLarge = large('x'.repeat(1024 * 1024));
    await expect(it.start(tooLarge)).rejects.toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      message: expect.stringContaining('the limit is 1048576'),
    });
    it.services.definitions.register([{ source: 'large.yaml', definition: tooLarge }]);
    expect(it.services.definitions.faults).toMatchObject([
      { source: 'large.yaml', path: '', message: expect.stringContaining('1048576') },
    ]);
    // Of many that are not too large a few stay in memory, and runs go on with the others all the same.
    const signal = { id: 'wait', uses: 'signal', with: { name: 'go' } };
    const ids = [];
    for (let n = 0; n < 15; n++) {
      const { jobs } = large(`${n}`.padEnd(900_000, 'x'));
      ids.push(await it.start({ jobs: { main: { steps: [signal, ...jobs.main.steps] } } }));
    }
    const runs = await Promise.all(ids.map((id) => it.until(id, 'waiting')));
    const { definitions } = it.services;
    expect(runs.filter(({ definitionHash }) => definitions.cached(definitionHash)).length).toBeLessThan(12);
    const params = { runId: ids[0] as never, name: 'go' };
    await it.call(sendSignal, { params, body: { payload: null } as never });
    await it.until(ids[0]!, 'succeeded');
  });

  test('a matrix that expands to more steps than the limit of a run fails its job', async () => {
    const it = await startWorkflow();
    const steps = Array.from({ length: 200 }, () => ({ uses: 'set' }));
    const matrix = { v: Array.from({ length: 200 }, (_, i) => i) };
    const id = await it.start({ jobs: { wide: { strategy: { matrix }, steps } } });
    expect((await it.until(id, 'failed')).error?.message).toMatch(/40000 steps with it; 10000 are the most/);
    const jobs = Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`j${i}`, { steps }]));
    await expect(it.start({ jobs })).rejects.toMatchObject({
      message: expect.stringContaining('10200 steps'),
    });
  });

  test.each([
    ['one expression', cel(Array(40).fill('input.text').join(' + '))],
    ['a text of many', Array(40).fill(cel('input.text')).join('')],
    ['many texts', Array(40).fill(cel('input.text'))],
  ])('%s may make four million characters', async (_, value) => {
    const it = await startWorkflow();
    const id = await it.start(
      { steps: [{ id: 'big', uses: 'set', with: { value } }] },
      { input: { text: 'x'.repeat(200_000) } },
    );
    const run = await it.until(id, 'failed');
    expect((run.error!.details as { error: { message: string } }).error.message).toMatch(
      /^jobs\.main\.steps\[0\]\.with.*it makes more than 4194304 characters/,
    );
  });

  test('the total size of step outputs of a run is limited', async () => {
    const it = await startWorkflow();
    const steps = Array.from({ length: 40 }, (_, i) => ({
      id: `s${i}`,
      uses: 'set',
      with: { text: cel('input.text') },
    }));
    const id = await it.start({ steps }, { input: { text: 'x'.repeat(1_000_000) } });
    const run = await it.until(id, 'failed');
    expect(run.error?.details).toMatchObject({
      step: 'main.s33',
      error: { code: 'PAYLOAD_TOO_LARGE', message: expect.stringContaining('The outputs of the run') },
    });
  });

  test('a run accepts a thousand signals without a waiter, and approvals in addition', async () => {
    const it = await startWorkflow();
    const id = await it.start({ steps: [{ id: 'ok', uses: 'approval' }] });
    await it.until(id, 'waiting');
    const send = () =>
      it.call(sendSignal, {
        params: { runId: id as never, name: 'noise' },
        body: { payload: null } as never,
      });
    for (let batch = 0; batch < 10; batch++) await Promise.all(Array.from({ length: 100 }, send));
    await expect(send()).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('1000'),
    });
    await it.services.runs.approve('default', id, 'main.ok', { approved: true, by: 'ann', comment: null });
    await it.until(id, 'succeeded');
  });

  test('a run keeps ten thousand log lines, and reports that there were more', async () => {
    const chatty = {
      name: 'chatty',
      mode: 'effect',
      takesSlot: true,
      defaultTimeoutMs: 60_000,
      check: () => [],
      isIdempotent: () => true,
      async run({ log }: { log(level: string, message: string): void }) {
        for (let i = 0; i < 10_500; i++) log('info', `line ${i}`);
        return { output: null };
      },
    } as const;
    const it = await openEngine({ dataDir: await tempDir(), kinds: [chatty] });
    await it.engine.start();
    const id = await it.begin([{ uses: 'chatty' }]);
    await expect.poll(async () => (await it.store.runs.find(null, id))?.status).toBe('succeeded');
    const { seq } = (await it.store.runs.find(null, id))!;
    const lines = await it.store.runs.logs(seq, 0, 20_000);
    expect(lines).toHaveLength(10_001);
    expect(lines.at(-1)!.item.message).toContain('More than 10000 lines');
    await it.close();
  });
});

test('following the lines of one step skips pages without any', async () => {
  const it = await startWorkflow();
  // Each failing expression is a line.
  const fails = (id: string) => ({ id, uses: 'set', with: { v: cel('1 / 0') }, continueOnError: true });
  const jobs = Object.fromEntries(
    Array.from({ length: 4 }, (_, j) => [
      `j${j}`,
      {
        needs: j === 0 ? [] : [`j${j - 1}`],
        steps: Array.from({ length: 180 }, (_, s) => fails(`s${s}`)),
      },
    ]),
  );
  const id = await it.start({ jobs });
  await it.until(id, 'succeeded');
  const page = await it.call(listRunLogs, {
    params: { runId: id as never },
    query: { limit: 1000 } as never,
  });
  expect(page.items).toHaveLength(720);
  const response = await it.fetch(`/api/v1/workflows/runs/${id}/logs?stepId=j3.s179`, {
    headers: { accept: 'text/event-stream' },
  });
  const text = await response.text();
  expect(text.match(/^data: \{"id"/gm)).toHaveLength(1);
  expect(text.trimEnd().endsWith('event: end\ndata: {}')).toBe(true);
});
