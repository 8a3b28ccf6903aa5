import { describe, expect, test } from 'vitest';
import { minutes } from '../../../src/kit/time/duration.ts';
import { printedRandom } from '../../support/random.ts';
import { LEDGER_CONFIG, startLedger } from './support/ledger.ts';
import { cel, startWorkflow, type TestWorkflow } from './support/workflow.ts';

async function setUp() {
  return { it: await startWorkflow({ config: LEDGER_CONFIG }), ledger: await startLedger() };
}

/** Moves time on until the run has one of the statuses. */
async function moveUntil(it: TestWorkflow, id: string, stepMs: number, ...statuses: string[]) {
  for (let i = 0; i < 200; i++) {
    const run = await it.run(id);
    if (statuses.includes(run.status)) return run;
    it.clock.advance(stepMs);
    await it.services.engine.tick();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error(`the run is still ${(await it.run(id)).status}`);
}

const RETRY = { maxAttempts: 4, initialMs: 1000, factor: 2, jitter: 'none' };

describe('retries', () => {
  test('have growing backoffs, stored as rows, and each attempt is recorded', async () => {
    const { it, ledger } = await setUp();
    ledger.answer('flaky', (_, response, nth) => response.writeHead(nth < 3 ? 503 : 200).end());
    const id = await it.start({
      steps: [{ id: 'call', uses: 'http', with: { url: `${ledger.url}/flaky` }, retry: RETRY }],
    });
    await it.until(id, 'waiting');
    expect(await it.step(id, 'main.call')).toMatchObject({
      status: 'waiting',
      waitingFor: { for: 'retry' },
      wakeAt: it.clock.now() + 1000,
      attempts: 1,
    });
    expect(it.services.engine.activeRuns).toBe(0);
    await moveUntil(it, id, 500, 'succeeded');
    const { history, attempts } = await it.step(id, 'main.call');
    expect(attempts).toBe(3);
    expect(history.map(({ status, errorClass }) => [status, errorClass])).toEqual([
      ['failed', 'server'],
      ['failed', 'server'],
      ['succeeded', null],
    ]);
    const [first, second, third] = history;
    expect(second!.startedAt! - first!.finishedAt).toBeGreaterThanOrEqual(1000);
    expect(third!.startedAt! - second!.finishedAt).toBeGreaterThanOrEqual(2000);
  });

  test('honour Retry-After, and end with the policy', async () => {
    const { it, ledger } = await setUp();
    ledger.answer('busy', (_, response) => response.writeHead(429, { 'retry-after': '30' }).end());
    const id = await it.start({
      steps: [
        {
          id: 'call',
          uses: 'http',
          with: { url: `${ledger.url}/busy` },
          retry: { ...RETRY, maxAttempts: 2 },
        },
      ],
    });
    await it.until(id, 'waiting');
    expect((await it.step(id, 'main.call')).wakeAt).toBe(it.clock.now() + 30_000);
    await moveUntil(it, id, 10_000, 'failed');
    expect(ledger.count('busy')).toBe(2);
    expect((await it.step(id, 'main.call')).history.map(({ errorClass }) => errorClass)).toEqual([
      'rate_limit',
      'rate_limit',
    ]);
  });

  test('happen for no class that the policy does not name, and never without a policy', async () => {
    const { it, ledger } = await setUp();
    ledger.answer('missing', (_, response) => response.writeHead(404).end());
    ledger.answer('down', (_, response) => response.writeHead(500).end());
    const permanent = await it.start({
      steps: [{ uses: 'http', with: { url: `${ledger.url}/missing` }, retry: RETRY }],
    });
    const without = await it.start({ steps: [{ uses: 'http', with: { url: `${ledger.url}/down` } }] });
    const asked = await it.start({
      steps: [
        { uses: 'http', with: { url: `${ledger.url}/missing` }, retry: { ...RETRY, on: ['not_found'] } },
      ],
    });
    await it.until(permanent, 'failed');
    await it.until(without, 'failed');
    expect([ledger.count('missing'), ledger.count('down')]).toEqual([2, 1]);
    await moveUntil(it, asked, 4000, 'failed');
    expect(ledger.count('missing')).toBe(5);
  });

  test('of an inherited policy happen to idempotent and keyed steps; a policy of the step is consent', async () => {
    const { it, ledger } = await setUp();
    const steps: Record<string, object> = {
      plain: {},
      keyed: { idempotencyKey: 'once' },
      harmless: { idempotent: true },
      own: { retry: { ...RETRY, maxAttempts: 3 } },
    };
    const jobs: Record<string, object> = {};
    for (const [name, options] of Object.entries(steps)) {
      ledger.answer(name, (_, response) => response.writeHead(500).end());
      jobs[name] = {
        steps: [{ uses: 'http', with: { url: `${ledger.url}/${name}`, method: 'POST' }, ...options }],
      };
    }
    for (const [name, options] of Object.entries({ read: {}, excluded: { idempotent: false } })) {
      ledger.answer(name, (_, response) => response.writeHead(500).end());
      jobs[name] = { steps: [{ uses: 'http', with: { url: `${ledger.url}/${name}` }, ...options }] };
    }
    const id = await it.start({ retry: { ...RETRY, maxAttempts: 2 }, jobs });
    await moveUntil(it, id, 1000, 'failed');
    const counts = Object.fromEntries(Object.keys(jobs).map((name) => [name, ledger.count(name)]));
    expect(counts).toEqual({ plain: 1, keyed: 2, harmless: 2, own: 3, read: 2, excluded: 1 });
  });

  test('a deadline ends them before the attempts do', async () => {
    const { it, ledger } = await setUp();
    ledger.answer('down', (_, response) => response.writeHead(500).end());
    const id = await it.start({
      retry: { ...RETRY, maxAttempts: 100, factor: 1, deadlineMs: 3500 },
      steps: [{ id: 'call', uses: 'http', with: { url: `${ledger.url}/down` } }],
    });
    await moveUntil(it, id, 500, 'failed');
    const { history } = await it.step(id, 'main.call');
    expect(history.length).toBeGreaterThan(1);
    expect(history.at(-1)!.startedAt! - history[0]!.startedAt!).toBeLessThanOrEqual(3500);
  });
});

describe('http steps', () => {
  test('send bodies, headers and keys, and hand on what came', async () => {
    const { it, ledger } = await setUp();
    ledger.answer('echo', (request, response) =>
      response
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify({ h: request.headers['x-a'], m: request.method })),
    );
    const id = await it.start(
      {
        steps: [
          {
            id: 'call',
            uses: 'http',
            with: {
              method: 'POST',
              url: `${ledger.url}/echo`,
              headers: { 'X-A': cel('input.a') },
              body: { v: cel('input.a') },
            },
            idempotencyKey: `order-${cel('input.a')}`,
          },
        ],
      },
      { input: { a: 'one' } },
    );
    await it.until(id, 'succeeded');
    expect(ledger.entries[0]).toMatchObject({ key: 'order-one', body: '{"v":"one"}' });
    expect((await it.step(id, 'main.call')).output).toMatchObject({
      status: 200,
      body: { h: 'one', m: 'POST' },
    });
  });

  test('that HTTP cannot carry fail at once, and are not tried again', async () => {
    const [it, ledger] = [await startWorkflow({ config: LEDGER_CONFIG }), await startLedger()];
    const url = `${ledger.url}/never`;
    const faulty: Array<[object, object?]> = [
      [{ url, headers: { 'a b': 'c' } }],
      [{ url, headers: { a: 'b\r\nc: d' } }],
      [{ url }, { idempotencyKey: 'order \u2192 1' }],
      [{ url, body: { a: 1 } }],
      [{ url, redirect: 'error' }],
    ];
    for (const [values, more = {}] of faulty) {
      const id = await it.start({
        steps: [{ uses: 'http', with: values, retry: { maxAttempts: 3, initialMs: 1 }, ...more }],
      });
      const run = await it.until(id, 'failed');
      expect(run.error?.details, JSON.stringify(values)).toMatchObject({
        error: { code: 'VALIDATION_ERROR' },
      });
      expect((await it.step(id, 'main.step1')).attempts).toBe(1);
    }
    expect(ledger.entries).toEqual([]);
  });

  test('reach no loopback, link-local or private address, by name or by redirect', async () => {
    const ledger = await startLedger();
    const it = await startWorkflow();
    const port = new URL(ledger.url).port;
    for (const url of [
      ledger.url,
      `http://localhost:${port}/`,
      'http://169.254.169.254/latest',
      'http://10.0.0.1/',
      'http://[::1]:1/',
      // The same places in other spellings.
      `http://[::ffff:127.0.0.1]:${port}/`,
      `http://2130706433:${port}/`,
      `http://0x7f.1:${port}/`,
      `http://0:${port}/`,
      'http://[64:ff9b::7f00:1]/',
    ]) {
      const id = await it.start({ steps: [{ uses: 'http', with: { url } }] });
      const run = await it.until(id, 'failed');
      expect(run.error?.details, url).toMatchObject({
        error: { code: 'PERMISSION_DENIED', message: expect.stringContaining('workflow.httpAllow') },
      });
    }
    expect(ledger.entries).toEqual([]);
  });

  test('an expected status is no failure; a refused connection is of class network', async () => {
    const { it, ledger } = await setUp();
    ledger.answer('gone', (_, response) => response.writeHead(410).end('bye'));
    const fine = await it.start({
      steps: [{ id: 'c', uses: 'http', with: { url: `${ledger.url}/gone`, expect: [410] } }],
    });
    await it.until(fine, 'succeeded');
    expect((await it.step(fine, 'main.c')).output).toMatchObject({ status: 410, body: 'bye' });
    const refused = await it.start({
      steps: [{ id: 'c', uses: 'http', with: { url: 'http://127.0.0.1:1/' } }],
    });
    await it.until(refused, 'failed');
    expect((await it.step(refused, 'main.c')).history[0]?.errorClass).toBe('network');
  });

  test('an answer that is too large is refused', async () => {
    const { it, ledger } = await setUp();
    ledger.answer('huge', (_, response) => response.end('x'.repeat(2 * 1024 * 1024)));
    const id = await it.start({ steps: [{ uses: 'http', with: { url: `${ledger.url}/huge` } }] });
    expect((await it.until(id, 'failed')).error?.details).toMatchObject({
      error: { code: 'PAYLOAD_TOO_LARGE' },
    });
  });
});

describe('time limits', () => {
  test('of a step end its attempt, and it may be tried again', async () => {
    const { it, ledger } = await setUp();
    ledger.answer('slow', (_, response, nth) => {
      if (nth > 1) response.end();
    });
    const id = await it.start({
      steps: [{ id: 's', uses: 'http', with: { url: `${ledger.url}/slow` }, timeoutMs: 2000, retry: RETRY }],
    });
    await expect.poll(() => ledger.count('slow')).toBe(1);
    await moveUntil(it, id, 1000, 'succeeded');
    expect((await it.step(id, 'main.s')).history.map(({ status }) => status)).toEqual([
      'timed_out',
      'succeeded',
    ]);
  });

  test('of a job and of a run end work in flight and queued work', async () => {
    const { it, ledger } = await setUp();
    ledger.answer('slow', () => {});
    const job = await it.start({
      jobs: {
        a: {
          timeoutMs: 5000,
          steps: [
            { uses: 'http', with: { url: `${ledger.url}/slow` }, timeoutMs: minutes(9) },
            { uses: 'set' },
          ],
        },
        b: { steps: [{ uses: 'set' }] },
      },
    });
    await expect.poll(() => ledger.count('slow')).toBe(1);
    const failed = await moveUntil(it, job, 1000, 'failed');
    expect(failed.jobs.map(({ status }) => status)).toEqual(['timed_out', 'succeeded']);
    expect((await it.steps(job)).map(({ status }) => status)).toEqual([
      'timed_out',
      'cancelled',
      'succeeded',
    ]);

    const run = await it.start({
      timeoutMs: 5000,
      steps: [{ id: 's', uses: 'signal', with: { name: 'never' } }],
    });
    await it.until(run, 'waiting');
    expect((await moveUntil(it, run, 1000, 'timed_out')).error?.message).toContain('5000 ms');
    expect((await it.step(run, 'main.s')).status).toBe('timed_out');
  });
});

describe('cancelling', () => {
  test('aborts work in flight; no work starts afterwards; the second cancel is 409', async () => {
    const { it, ledger } = await setUp();
    let left = false;
    ledger.answer('slow', (_, response) => response.on('close', () => (left = true)));
    const id = await it.start({
      steps: [
        { id: 'a', uses: 'http', with: { url: `${ledger.url}/slow` } },
        { id: 'b', uses: 'http', with: { url: `${ledger.url}/after` } },
      ],
    });
    await expect.poll(() => ledger.count('slow')).toBe(1);
    const reply = await it.fetch(`/workflows/runs/${id}/cancel`, { method: 'POST' });
    expect([reply.status, await reply.json()]).toEqual([
      200,
      { cancelled: true, status: expect.stringMatching(/^cancell/) },
    ]);
    const again = await it.fetch(`/api/v1/workflows/runs/${id}`, { method: 'DELETE' });
    expect([again.status, ((await again.json()) as { error: { code: string } }).error.code]).toEqual([
      409,
      'WORKFLOW_ALREADY_CANCELLED',
    ]);
    await it.until(id, 'cancelled');
    await expect.poll(() => left).toBe(true);
    expect((await it.steps(id)).map(({ status }) => status)).toEqual(['cancelled', 'cancelled']);
    expect(ledger.count('after')).toBe(0);
    expect((await it.eventTypes(id)).filter((type) => type.startsWith('run.'))).toEqual([
      'run.queued',
      'run.started',
      'run.cancelling',
      'run.cancelled',
    ]);
  });

  test('a run that has ended keeps its status', async () => {
    const { it } = await setUp();
    const id = await it.start({ steps: [{ uses: 'set' }] });
    await it.until(id, 'succeeded');
    expect(await it.services.runs.cancel('default', id)).toEqual({ cancelled: false, status: 'succeeded' });
    expect((await it.run(id)).status).toBe('succeeded');
    expect((await it.fetch('/workflows/runs/run_nobody/cancel', { method: 'POST' })).status).toBe(404);
  });

  test('waiting and queued work is cancelled at once', async () => {
    const { it } = await setUp();
    const waiting = await it.start({ steps: [{ uses: 'signal', with: { name: 'go' } }] });
    const planned = await it.start({ steps: [{ uses: 'set' }] }, { runAt: it.clock.now() + 5000 });
    await it.until(waiting, 'waiting');
    for (const id of [waiting, planned])
      expect(await it.services.runs.cancel('default', id)).toEqual({ cancelled: true, status: 'cancelled' });
    it.clock.advance(10_000);
    await it.services.engine.tick();
    expect((await it.run(planned)).status).toBe('cancelled');
  });

  test('a storm of cancels and starts leaves no run half done', async () => {
    const { it, ledger } = await setUp();
    const random = printedRandom();
    ledger.answer('work', (_, response) => setTimeout(() => response.end(), random() * 20));
    const ids = await Promise.all(
      Array.from({ length: 60 }, () =>
        it.start({
          steps: [
            { uses: 'set' },
            { uses: 'http', with: { url: `${ledger.url}/work` } },
            { uses: 'http', with: { url: `${ledger.url}/work` } },
          ],
        }),
      ),
    );
    const answers = await Promise.all(
      ids.flatMap((id) =>
        [1, 2].map(async () => (await it.fetch(`/workflows/runs/${id}/cancel`, { method: 'POST' })).status),
      ),
    );
    expect(answers.filter((status) => status !== 200 && status !== 409)).toEqual([]);
    for (const id of ids) {
      const run = await it.until(id, 'cancelled', 'succeeded');
      const states = (await it.steps(id)).map(({ status }) => status);
      if (run.status === 'cancelled') expect(states).not.toContain('running');
    }
    const before = ledger.entries.length;
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(ledger.entries.length).toBe(before);
    expect(it.services.engine.activeRuns).toBe(0);
  });
});

test('rerunning from a step keeps the results of earlier ones', async () => {
  const { it, ledger } = await setUp();
  ledger.answer('breaks', (_, response, nth) => response.writeHead(nth === 1 ? 400 : 200).end());
  const call = (id: string) => ({ id, uses: 'http', with: { url: `${ledger.url}/${id}` } });
  const id = await it.start({
    jobs: {
      a: { outputs: { x: cel('steps.one.output.status') }, steps: [call('one')] },
      b: {
        needs: 'a',
        steps: [
          call('two'),
          call('breaks'),
          { id: 'end', uses: 'set', with: { x: cel('needs.a.outputs.x') } },
        ],
      },
      c: { needs: 'b', steps: [call('three')] },
    },
  });
  await it.until(id, 'failed');
  const again = await it.services.reruns.rerun(
    'default',
    id,
    { fromStep: 'b.breaks' },
    {
      tenantId: 'default',
      hostId: 'x',
      requestId: 'r',
      traceId: 't',
    },
  );
  expect(again).toMatchObject({ rerunOf: id, trigger: 'rerun' });
  await it.until(again.id, 'succeeded');
  expect(['one', 'two', 'breaks', 'three'].map((name) => ledger.count(name))).toEqual([1, 1, 2, 1]);
  expect((await it.step(again.id, 'b.end')).output).toEqual({ x: 200 });
  const whole = await it.services.reruns.rerun(
    'default',
    id,
    {},
    {
      tenantId: 'default',
      hostId: 'x',
      requestId: 'r',
      traceId: 't',
    },
  );
  await it.until(whole.id, 'succeeded');
  expect(ledger.count('one')).toBe(2);
  await expect(
    it.services.reruns.rerun(
      'default',
      id,
      { fromStep: 'b.nope' },
      {
        tenantId: 'default',
        hostId: 'x',
        requestId: 'r',
        traceId: 't',
      },
    ),
  ).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
});

test('concurrent calls of steps are limited, and tenants take turns for the slots', async () => {
  const [it, ledger] = [
    await startWorkflow({ config: { workflow: { ...LEDGER_CONFIG.workflow, maxRunningSteps: 2 } } }),
    await startLedger(),
  ];
  const held: Array<() => void> = [];
  let open = false;
  ledger.answer('w', (_, response) => {
    if (open) setTimeout(() => response.end(), 5);
    else held.push(() => response.end());
  });
  const work = (name: string) => ({ steps: [{ uses: 'http', with: { url: `${ledger.url}/w/${name}` } }] });
  const ids = await Promise.all(
    Array.from({ length: 12 }, (_, i) => it.start(work(`a${i}`), { tenant: 'a' })),
  );
  const late = await it.start(work('b'), { tenant: 'b' });
  await expect.poll(async () => (await it.run(late, 'b')).status).toBe('running');
  await expect.poll(() => held.length).toBe(2);
  open = true;
  for (const answer of held) answer();
  for (const id of ids) await expect.poll(async () => (await it.run(id, 'a')).status).toBe('succeeded');
  await expect.poll(async () => (await it.run(late, 'b')).status).toBe('succeeded');
  expect(ledger.mostOpen).toBe(2);
  expect(ledger.entries.findIndex(({ name }) => name === 'w/b')).toBeLessThan(5);
});
