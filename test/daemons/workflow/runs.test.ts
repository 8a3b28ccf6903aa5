import { describe, expect, test } from 'vitest';
import { getRun, listRuns, startRun } from '../../../src/contracts/index.ts';
import { LEDGER_CONFIG, startLedger } from './support/ledger.ts';
import { cel, startWorkflow, type TestWorkflow } from './support/workflow.ts';

test('a run of three steps hands values on and ends with its outputs', async () => {
  const it = await startWorkflow();
  const id = await it.start(
    {
      outputs: { total: cel('jobs.main.outputs.total') },
      jobs: {
        main: {
          outputs: { total: cel('steps.double.output.value + 1') },
          steps: [
            { id: 'read', uses: 'set', with: { value: cel('input.n') } },
            { id: 'double', uses: 'set', with: { value: cel('steps.read.output.value * 2') } },
            { id: 'say', uses: 'set', with: { text: `it is ${cel('steps.double.output.value')}` } },
          ],
        },
      },
    },
    { input: { n: 20 } },
  );
  const run = await it.until(id, 'succeeded');
  expect(run.output).toEqual({ total: 41 });
  expect((await it.step(id, 'main.say')).output).toEqual({ text: 'it is 40' });
  expect(await it.eventTypes(id)).toEqual([
    'run.queued',
    'run.started',
    'job.started main',
    'step.started main.read',
    'step.succeeded main.read',
    'step.started main.double',
    'step.succeeded main.double',
    'step.started main.say',
    'step.succeeded main.say',
    'job.succeeded main',
    'run.succeeded',
  ]);
});

describe('jobs', () => {
  test('run after those they need, and see their outputs', async () => {
    const it = await startWorkflow();
    const job = (needs: string[], value: string) => ({
      needs,
      outputs: { value: cel('steps.a.output.v') },
      steps: [{ id: 'a', uses: 'set', with: { v: value } }],
    });
    const id = await it.start({
      jobs: {
        last: job(['left', 'right'], cel('needs.left.outputs.value + needs.right.outputs.value')),
        left: job(['first'], cel('needs.first.outputs.value + "l"')),
        right: job(['first'], cel('needs.first.outputs.value + "r"')),
        first: job([], 'f'),
      },
    });
    const run = await it.until(id, 'succeeded');
    expect(run.output).toMatchObject({ last: { value: 'flfr' } });
    const order = (await it.eventTypes(id)).filter((type) => type.startsWith('job.started'));
    expect(order[0]).toBe('job.started first');
    expect(order[3]).toBe('job.started last');
  });

  test('are skipped when one they need failed, unless their condition asks for that', async () => {
    const it = await startWorkflow();
    const say = [{ uses: 'set', with: { ok: true } }];
    const id = await it.start({
      jobs: {
        breaks: { steps: [{ uses: 'set', with: { v: cel('input.missing.deep') } }] },
        after: { needs: 'breaks', steps: say },
        cleanup: { needs: ['breaks'], if: 'failure()', steps: say },
        always: { needs: 'breaks', if: cel('always()'), steps: say },
        behind: { needs: 'after', steps: say },
      },
    });
    const run = await it.until(id, 'failed');
    const states = Object.fromEntries(run.jobs.map((job) => [job.id, job.status]));
    expect(states).toEqual({
      breaks: 'failed',
      after: 'skipped',
      cleanup: 'succeeded',
      always: 'succeeded',
      behind: 'skipped',
    });
    expect(run.error).toMatchObject({ code: 'STEP_FAILED', details: { step: 'breaks.step1' } });
  });

  test('a matrix runs every combination, so many at a time', async () => {
    const [it, ledger] = [await startWorkflow({ config: LEDGER_CONFIG }), await startLedger()];
    ledger.answer('m', (_, response) => setTimeout(() => response.end('{}'), 20));
    const id = await it.start(
      {
        jobs: {
          build: {
            strategy: { matrix: { os: ['linux', 'mac'], node: cel('input.versions') }, maxParallel: 2 },
            steps: [
              { uses: 'http', with: { url: `${ledger.url}/m/${cel('matrix.os')}-${cel('matrix.node')}` } },
            ],
          },
        },
      },
      { input: { versions: [20, 22, 24] } },
    );
    await it.until(id, 'succeeded');
    expect(ledger.entries.map(({ name }) => name).toSorted()).toEqual([
      'm/linux-20',
      'm/linux-22',
      'm/linux-24',
      'm/mac-20',
      'm/mac-22',
      'm/mac-24',
    ]);
    expect(ledger.mostOpen).toBe(2);
  });

  test('one failed combination ends the others, unless failFast is off', async () => {
    const [it, ledger] = [await startWorkflow({ config: LEDGER_CONFIG }), await startLedger()];
    ledger.answer('bad', (_, response) => response.writeHead(400).end());
    ledger.answer('slow', () => {});
    const definition = (failFast: boolean, names: string[]) => ({
      jobs: {
        m: {
          strategy: { matrix: { name: names }, failFast },
          steps: [{ uses: 'http', with: { url: `${ledger.url}/${cel('matrix.name')}` } }],
        },
      },
    });
    const fast = await it.until(await it.start(definition(true, ['slow', 'bad'])), 'failed');
    expect(fast.jobs.map(({ status }) => status)).toEqual(['cancelled', 'failed']);
    const calm = await it.until(await it.start(definition(false, ['good', 'bad'])), 'failed');
    expect(calm.jobs.map(({ status }) => status)).toEqual(['succeeded', 'failed']);
  });

  test('a matrix that is no list fails its job and says why', async () => {
    const it = await startWorkflow();
    const id = await it.start({
      jobs: { m: { strategy: { matrix: { x: cel('input') } }, steps: [{ uses: 'set' }] } },
    });
    expect((await it.until(id, 'failed')).error?.message).toContain('matrix.x must be a list');
  });
});

describe('steps', () => {
  test('are skipped by their condition, and after a failure', async () => {
    const it = await startWorkflow();
    const id = await it.start(
      {
        steps: [
          { id: 'no', if: 'input.go', uses: 'set' },
          { id: 'breaks', uses: 'set', with: { v: cel('1 / 0') } },
          { id: 'after', uses: 'set' },
          { id: 'tidy', if: 'failure()', uses: 'set', with: { saw: cel('steps.breaks.status') } },
        ],
      },
      { input: { go: false } },
    );
    await it.until(id, 'failed');
    const steps = await it.steps(id);
    expect(steps.map(({ status }) => status)).toEqual(['skipped', 'failed', 'skipped', 'succeeded']);
    expect(steps[3]!.output).toEqual({ saw: 'failed' });
  });

  test('one that may fail does not fail its job', async () => {
    const it = await startWorkflow();
    const id = await it.start({
      steps: [
        { id: 'may', continueOnError: true, uses: 'set', with: { v: cel('input.nothing.here') } },
        { id: 'next', uses: 'set', with: { was: cel('steps.may.status') } },
      ],
    });
    await it.until(id, 'succeeded');
    expect((await it.step(id, 'main.next')).output).toEqual({ was: 'failed' });
  });

  test('a condition that is no truth value fails, with its place', async () => {
    const it = await startWorkflow();
    const id = await it.start({ steps: [{ if: 'input.n', uses: 'set' }] }, { input: { n: 3 } });
    expect((await it.until(id, 'failed')).error?.message).toContain(
      'jobs.main.steps[0].if: `input.n` must be true or false, not 3',
    );
  });

  test('a list keeps the place of an expression that finds nothing', async () => {
    const it = await startWorkflow();
    const values = { list: [cel('input.none'), 'last'], nested: [[cel('input.none')]] };
    const id = await it.start({ steps: [{ uses: 'set', with: values }] }, { input: { none: null } });
    await it.until(id, 'succeeded');
    expect((await it.step(id, 'main.step1')).output).toEqual({ list: [null, 'last'], nested: [[null]] });
  });

  test('read JSON whatever its keys are called', async () => {
    const it = await startWorkflow();
    const odd = {
      constructor: null,
      blocked: true,
      team: { constructor: 'Ferrari', cars: [{ constructor: {} }] },
    };
    const id = await it.start(
      {
        outputs: { all: cel('jobs.main.outputs.odd'), car: cel('jobs.main.outputs.constructor') },
        jobs: {
          main: {
            outputs: { odd: cel('steps.constructor.output.odd'), constructor: cel('input.team.cars[0]') },
            steps: [
              { id: 'constructor', uses: 'set', with: { odd: cel('fromJson(toJson(input))') } },
              {
                id: 'seen',
                uses: 'set',
                if: cel('input.?blocked.orValue(false)'),
                with: { of: cel('input.team') },
              },
            ],
          },
        },
      },
      { input: odd },
    );
    await it.until(id, 'succeeded');
    expect((await it.step(id, 'main.seen')).output).toEqual({ of: odd.team });
    expect((await it.run(id)).output).toEqual({ all: odd, car: { constructor: {} } });
    // What the library would leave out without a word.
    await expect(
      it.start({ steps: [{ uses: 'set', with: { v: cel('{"a": 1, "constructor": 2}') } }] }),
    ).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      details: {
        issues: [{ path: 'jobs.main.steps[0].with.v', message: expect.stringContaining('"constructor"') }],
      },
    });
  });

  test('an endless expression costs its step and not the daemon', async () => {
    const it = await startWorkflow();
    const id = await it.start(
      { steps: [{ uses: 'set', with: { v: cel('input.text.matches("^(a+)+$")') } }] },
      { input: { text: `${'a'.repeat(60)}!` } },
    );
    expect((await it.until(id, 'failed')).error?.message).toContain('took longer than 1000 ms');
    await it.until(await it.start({ steps: [{ uses: 'set' }] }), 'succeeded');
  });

  test('large values are handed on, and too large ones refused', async () => {
    const it = await startWorkflow();
    const text = 'x'.repeat(200_000);
    const id = await it.start(
      {
        steps: [
          { id: 'a', uses: 'set', with: { v: cel('input.text') } },
          { id: 'b', uses: 'set', with: { size: cel('size(steps.a.output.v)') } },
        ],
      },
      { input: { text } },
    );
    await it.until(id, 'succeeded');
    expect((await it.step(id, 'main.b')).output).toEqual({ size: 200_000 });
    expect((await it.step(id, 'main.a')).output).toEqual({ v: text });
    const large = await it.start(
      {
        steps: [{ uses: 'set', with: { v: cel('[input.t, input.t, input.t, input.t, input.t, input.t]') } }],
      },
      { input: { t: text } },
    );
    expect((await it.until(large, 'failed')).error?.details).toMatchObject({
      error: { code: 'PAYLOAD_TOO_LARGE' },
    });
  });
});

describe('a definition', () => {
  async function faultsOf(it: TestWorkflow, definition: Record<string, unknown>) {
    try {
      await it.start(definition);
    } catch (error) {
      const { code, details } = error as {
        code: string;
        details: { issues: Array<Record<string, unknown>> };
      };
      expect(code).toBe('VALIDATION_ERROR');
      return details.issues;
    }
    throw new Error('was accepted');
  }

  test('is refused with every fault and its place', async () => {
    const it = await startWorkflow();
    const faults = await faultsOf(it, {
      jobs: {
        a: {
          needs: ['b', 'nobody'],
          if: 'needs.c.status == "x"',
          steps: [
            { id: 'one', uses: 'set', with: { deep: [`ok ${cel('1 +')}`] } },
            { id: 'one', uses: 'nothing' },
            { uses: 'set', with: { v: cel('steps.later.output') } },
            { uses: 'wait', with: { ms: 1, until: 2 } },
            { uses: 'http', with: { method: 'FETCH' } },
            { uses: 'set', if: 'unknown_thing == 1' },
          ],
        },
        b: { needs: 'a', steps: [{ uses: 'set' }] },
      },
      on: { schedule: [{ cron: '99 * * * *' }, { cron: '* * * * *', timezone: 'Mars/Olympus' }] },
    });
    const told = faults.map(
      ({ path, line, column, message }) =>
        `${path}${line ? `:${line}:${column}` : ''} ${String(message).split('\n')[0]}`,
    );
    expect(told.toSorted()).toEqual([
      expect.stringMatching(/^jobs\.a\.if:1:1 "needs\.c" is not there/),
      expect.stringMatching(/^jobs\.a\.needs jobs need each other in a circle: a -> b -> a/),
      expect.stringMatching(/^jobs\.a\.needs\[1\] there is no job "nobody"/),
      expect.stringMatching(/^jobs\.a\.steps\[0\]\.with\.deep\[0\]:1:\d+ `1 \+`: /),
      expect.stringMatching(/^jobs\.a\.steps\[1\]\.id the job has two steps "one"/),
      expect.stringMatching(/^jobs\.a\.steps\[1\]\.uses nothing runs "nothing"/),
      expect.stringMatching(/^jobs\.a\.steps\[2\]\.with\.v:1:\d+ "steps\.later" is not there at this point/),
      expect.stringMatching(/^jobs\.a\.steps\[3\]\.with give one of "for", "ms" and "until"/),
      expect.stringMatching(/^jobs\.a\.steps\[4\]\.with\.method must be one of/),
      expect.stringMatching(/^jobs\.a\.steps\[4\]\.with\.url is required/),
      expect.stringMatching(
        /^jobs\.a\.steps\[5\]\.if:1:1 `unknown_thing == 1`: Unknown variable: unknown_thing/,
      ),
      expect.stringMatching(/^on\.schedule\[0\]\.cron /),
      expect.stringMatching(/^on\.schedule\[1\]\.timezone "Mars\/Olympus" is not a time zone/),
    ]);
  });

  test('has its input checked, defaults filled in', async () => {
    const it = await startWorkflow();
    const definition = {
      inputs: {
        type: 'object',
        properties: { n: { type: 'integer' }, who: { type: 'string', default: 'you' } },
        required: ['n'],
      },
      steps: [{ id: 'a', uses: 'set', with: { who: cel('input.who') } }],
    };
    await expect(it.start(definition, { input: { n: 'x' } })).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      details: { issues: [{ path: 'input.n' }] },
    });
    const id = await it.start(definition, { input: { n: 1 } });
    await it.until(id, 'succeeded');
    expect((await it.step(id, 'main.a')).output).toEqual({ who: 'you' });
  });
});

describe('starting', () => {
  const hold = { steps: [{ uses: 'signal', with: { name: 'go' } }] };

  test('starting twice with one key starts once; with another body it is a conflict', async () => {
    const it = await startWorkflow();
    const [first, second] = await Promise.all([
      it.start(hold, { idempotencyKey: 'k', input: { a: 1 } }),
      it.start(hold, { idempotencyKey: 'k', input: { a: 1 } }),
    ]);
    expect(second).toBe(first);
    await expect(it.start(hold, { idempotencyKey: 'k', input: { a: 2 } })).rejects.toMatchObject({
      code: 'CONFLICT',
    });
    expect(await it.start(hold, { idempotencyKey: 'k', input: { a: 2 }, tenant: 'other' })).not.toBe(first);
    const byHeader = await it.fetch('/api/v1/workflows/runs', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'k' },
      body: JSON.stringify({ definition: { id: 'test', jobs: { main: hold } }, input: { a: 3 } }),
    });
    expect(byHeader.status).toBe(409);
  });

  test('two keys, one in the header and one in the body, are refused; the same one in both is fine', async () => {
    const it = await startWorkflow();
    const post = async (path: string, header: string, body: object) => {
      const answer = await it.fetch(`/api/v1/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': header },
        body: JSON.stringify(body),
      });
      return { status: answer.status, body: (await answer.json()) as { run?: { id: string } } };
    };
    const start = { definition: { id: 'test', jobs: { main: hold } }, idempotencyKey: 'in-body' };
    const refusal = {
      code: 'VALIDATION_ERROR',
      message: expect.stringMatching(
        /Idempotency-Key says "in-header".* idempotencyKey of the body "in-body"/,
      ),
      details: { header: 'in-header', field: 'in-body' },
    };
    expect(await post('workflows/runs', 'in-header', start)).toEqual({
      status: 400,
      body: { error: refusal },
    });
    const job = { handler: 'plugin/job', idempotencyKey: 'in-body' };
    expect(await post('jobs', 'in-header', job)).toEqual({ status: 400, body: { error: refusal } });
    const both = await post('workflows/runs', 'in-body', start);
    expect(both.status).toBe(202);
    expect(await it.start(hold, { idempotencyKey: 'in-body' })).toBe(both.body.run!.id);
  });

  test('an unknown workflow is 404, and a run of another tenant is invisible', async () => {
    const it = await startWorkflow();
    await expect(it.call(startRun, { body: { workflowId: 'nope' } as never })).rejects.toMatchObject({
      code: 'WORKFLOW_NOT_FOUND',
    });
    const id = await it.start(hold, { tenant: 'acme' });
    await expect(it.call(getRun, { params: { runId: id as never } })).rejects.toMatchObject({
      code: 'WORKFLOW_RUN_NOT_FOUND',
    });
    expect((await it.run(id, 'acme')).workflowId).toBe('test');
  });

  test('a planned run waits for its time and says so', async () => {
    const it = await startWorkflow();
    const id = await it.start({ steps: [{ uses: 'set' }] }, { runAt: it.clock.now() + 60_000 });
    expect(await it.run(id)).toMatchObject({
      status: 'queued',
      queuedReason: expect.stringContaining('planned for'),
    });
    it.clock.advance(59_000);
    await it.services.engine.tick();
    expect((await it.run(id)).status).toBe('queued');
    it.clock.advance(1000);
    await it.until(id, 'succeeded');
  });

  test('the time of a planned run is a number, or a date and time that says its offset', async () => {
    const it = await startWorkflow();
    const plan = (runAt: unknown) => it.start({ steps: [{ uses: 'set' }] }, { runAt: runAt as never });
    const at = Date.UTC(2040, 0, 31, 12);
    for (const text of ['2040-01-31T12:00:00Z', '2040-01-31T13:00:00.000+01:00', at])
      expect((await it.run(await plan(text))).runAt).toBe(at);
    const once = { idempotencyKey: 'same' };
    const body = { steps: [{ uses: 'set' }] };
    expect(await it.start(body, { ...once, runAt: '2040-01-31T12:00:00Z' as never })).toBe(
      await it.start(body, { ...once, runAt: at }),
    );
    const faulty = ['2040-01-31T12:00:00', '2040-01-31', 'tomorrow', String(at), at + 0.5, 9e15, null, true];
    for (const runAt of faulty)
      await expect(plan(runAt), String(runAt)).rejects.toMatchObject({
        code: 'VALIDATION_ERROR',
        message: expect.stringMatching(
          /^body.runAt: (must be epoch milliseconds or an ISO 8601|must be at most)/,
        ),
      });
  });

  test('unfinished runs, and starts a day and a month, are limited per tenant', async () => {
    const it = await startWorkflow({
      config: { tenants: { small: { concurrentRuns: 2 }, daily: { runsPerDay: 2, runsPerMonth: 3 } } },
    });
    const first = await it.start(hold, { tenant: 'small' });
    await it.start(hold, { tenant: 'small' });
    await expect(it.start(hold, { tenant: 'small' })).rejects.toMatchObject({
      code: 'CONCURRENT_LIMIT_EXCEEDED',
      details: { limit: 2 },
    });
    await it.services.runs.cancel('small', first);
    await it.start(hold, { tenant: 'small' });

    const quick = { steps: [{ uses: 'set' }] };
    const daily = { tenant: 'daily' };
    await it.start(quick, daily);
    await it.start(quick, daily);
    await expect(it.start(quick, daily)).rejects.toMatchObject({
      code: 'QUOTA_EXCEEDED',
      details: { period: 'day' },
    });
    it.clock.advance(24 * 3600_000);
    await it.start(quick, daily);
    it.clock.advance(24 * 3600_000);
    await expect(it.start(quick, daily)).rejects.toMatchObject({
      code: 'QUOTA_EXCEEDED',
      details: { period: 'month' },
    });
  });

  test('children count for no limit on unfinished runs', async () => {
    const it = await startWorkflow({ config: { tenants: { small: { concurrentRuns: 2 } } } });
    const child = { id: 'child', jobs: { main: hold } };
    it.services.definitions.register([{ source: 'test', definition: child }]);
    const small = { tenant: 'small' };
    const parent = await it.start({ steps: [{ uses: 'workflow', with: { id: 'child' } }] }, small);
    const { call } = it;
    const waiting = () => call(listRuns, { query: { status: 'waiting' } as never }, 'small');
    await expect.poll(async () => (await waiting()).items.length).toBe(2);
    await it.start(hold, small);
    await expect(it.start(hold, small)).rejects.toMatchObject({ code: 'CONCURRENT_LIMIT_EXCEEDED' });
    expect((await it.run(parent, 'small')).status).toBe('waiting');
  });

  test('lists newest first, by status and workflow, page by page', async () => {
    const it = await startWorkflow();
    const ids: string[] = [];
    for (let i = 0; i < 5; i++)
      ids.push(await it.start({ id: i % 2 ? 'odd' : 'even', steps: [{ uses: 'set' }] }));
    const waiting = await it.start({ id: 'even', ...hold });
    for (const id of ids) await it.until(id, 'succeeded');
    await it.until(waiting, 'waiting');
    const list = (query: object) => it.call(listRuns, { query: { limit: 50, ...query } as never });
    expect((await list({})).items.map(({ id }) => id)).toEqual([...ids, waiting].reverse());
    expect((await list({ status: 'waiting' })).items.map(({ id }) => id)).toEqual([waiting]);
    const several = await list({ status: ['waiting', 'succeeded', 'failed'] });
    expect(several.items.map(({ id }) => id)).toEqual([...ids, waiting].reverse());
    await expect(list({ status: ['waiting', 'odd'] })).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    expect((await list({ workflowId: 'odd' })).items).toHaveLength(2);
    const first = await list({ limit: 4 });
    const second = await list({ limit: 4, cursor: first.nextCursor });
    expect([...first.items, ...second.items].map(({ id }) => id)).toEqual([...ids, waiting].reverse());
    expect(second.nextCursor).toBeNull();
    expect((await it.call(listRuns, { query: { limit: 50 } as never }, 'other')).items).toEqual([]);
    // An empty one would be a page without runs, which looks like the end.
    for (const cursor of ['', '-1', '1e3', '0x10', 'abc', '9007199254740993'])
      await expect(list({ cursor }), cursor).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
  });
});

test('with room for one run, higher priority goes first and tenants take turns', async () => {
  const [it, ledger] = [
    await startWorkflow({ config: { workflow: { ...LEDGER_CONFIG.workflow, maxRunningRuns: 1 } } }),
    await startLedger(),
  ];
  let letGo: () => void = () => {};
  ledger.answer('block', (_, response) => {
    letGo = () => response.end('{}');
  });
  const call = (name: string) => ({ steps: [{ uses: 'http', with: { url: `${ledger.url}/${name}` } }] });
  const blocker = await it.start(call('block'));
  await expect.poll(() => ledger.count('block')).toBe(1);
  for (const name of ['a1', 'a2', 'a3']) await it.start(call(name), { tenant: 'a' });
  await it.start(call('a-urgent'), { tenant: 'a', priority: 50 });
  const last = await it.start(call('b1'), { tenant: 'b' });
  expect((await it.run(last, 'b')).queuedReason).toBe('It waits for its turn');
  letGo();
  await it.until(blocker, 'succeeded');
  await expect.poll(() => ledger.entries.length).toBe(6);
  expect(ledger.entries.map(({ name }) => name)).toEqual(['block', 'a-urgent', 'b1', 'a1', 'a2', 'a3']);
});

test('due runs are not starved by ready ones', async () => {
  const [it, ledger] = [
    await startWorkflow({ config: { workflow: { ...LEDGER_CONFIG.workflow, maxRunningRuns: 1 } } }),
    await startLedger(),
  ];
  ledger.answer('w', (_, response) => setTimeout(() => response.end('{}'), 5));
  const sleeper = await it.start({
    steps: [
      { uses: 'wait', with: { ms: 1000 } },
      { uses: 'http', with: { url: `${ledger.url}/awake` } },
    ],
  });
  await it.until(sleeper, 'waiting');
  const work = { steps: [{ uses: 'http', with: { url: `${ledger.url}/w` } }] };
  const ids = await Promise.all(Array.from({ length: 40 }, () => it.start(work)));
  it.clock.advance(1000);
  await it.services.engine.tick();
  await it.until(sleeper, 'succeeded');
  await Promise.all(ids.map((id) => it.until(id, 'succeeded')));
  expect(ledger.entries.findIndex(({ name }) => name === 'awake')).toBeLessThan(20);
});

test.each([
  '/api/v1/workflows/runs?workflow=x',
  '/api/v1/workflows?name=x',
  '/api/v1/workflows/schedules?paused=true',
  '/api/v1/workflows/runs/run_x/steps?status=failed',
  '/api/v1/jobs?handlr=a/b',
])('an unknown filter of a list is refused: %s', async (path) => {
  const it = await startWorkflow();
  const response = await it.fetch(path);
  expect([response.status, await response.json()]).toMatchObject([
    400,
    { error: { code: 'VALIDATION_ERROR', message: expect.stringContaining('is not a known key') } },
  ]);
});
