import { describe, expect, test } from 'vitest';
import { listRunLogs, listWorkflows, startRun, submitJob } from '../../../src/contracts/index.ts';
import { minutes, seconds } from '../../../src/kit/time/duration.ts';
import { startCode } from './support/code.ts';
import { cel } from './support/workflow.ts';

describe('a workflow in code', () => {
  test('runs its steps in order, and its return value is the output of the run', async () => {
    const it = await startCode(`
      export const order = defineWorkflow({
        id: 'order',
        input: z.object({ total: z.number().default(7) }),
        run: async (ctx, { total }) => {
          const charge = await ctx.step('charge', () => ({ paid: total, at: new Date(0), not: undefined }));
          const key = await ctx.step('send', ({ idempotencyKey }) => idempotencyKey);
          return { charge, key, none: await ctx.step('none', () => {}) };
        },
      });`);
    const id = await it.begin('order');
    const run = await it.until(id, 'succeeded', 'failed');
    expect(run).toMatchObject({
      error: null,
      output: { charge: { paid: 7, at: '1970-01-01T00:00:00.000Z' }, key: `${id}/main.send`, none: null },
      jobs: [{ id: 'main', status: 'succeeded' }],
    });
    expect(await it.states(id)).toEqual(['charge succeeded', 'send succeeded', 'none succeeded']);
    expect(await it.eventTypes(id)).toEqual(
      expect.arrayContaining(['step.started main.charge', 'step.succeeded main.send', 'job.succeeded main']),
    );
  });

  test('waits without a process, and replays from its first line with recorded results', async () => {
    const it = await startCode(`
      export const waits = defineWorkflow({
        id: 'waits',
        run: async (ctx) => {
          ctx.log.info('at the beginning');
          const before = await ctx.step('before', () => Math.random());
          await ctx.sleep(60_000);
          ctx.log.info('after the sleep');
          const { payload } = await ctx.waitForSignal('go');
          const { by } = await ctx.approval('ship', { message: 'Ship it?' });
          return { before, payload, by };
        },
      });`);
    const id = await it.begin('waits');
    await it.until(id, 'waiting');
    expect(it.services.engine.activeRuns).toBe(0);
    const [before] = await it.steps(id);
    await it.wakeAfter(60_000);
    await expect.poll(() => it.states(id)).toContain('go waiting');
    await it.services.runs.signal('default', id, 'go', { a: 1 });
    await expect.poll(() => it.states(id)).toContain('ship waiting');
    expect((await it.step(id, 'main.ship')).waitingFor).toEqual({ for: 'approval', message: 'Ship it?' });
    const decision = { approved: true, by: 'ann', comment: null };
    await it.services.runs.approve('default', id, 'main.ship', decision);
    const { output } = await it.until(id, 'succeeded', 'failed');
    expect(output).toEqual({ before: before!.output, payload: { a: 1 }, by: 'ann' });
    // Four passes went through it, and each line was written once.
    const lines = async () =>
      (await it.call(listRunLogs, { params: { runId: id as never }, query: { limit: 99 } })).items.map(
        ({ message }) => message,
      );
    await expect.poll(lines).toEqual(['at the beginning', 'after the sleep']);
  });

  test('gets the same time and chance in each pass', async () => {
    const it = await startCode(`
      export const chance = defineWorkflow({
        id: 'chance',
        run: async (ctx) => {
          const first = [ctx.now(), ctx.random(), ctx.uuid()];
          await ctx.step('keep', () => first);
          await ctx.sleep(5000);
          const then = [ctx.now(), ctx.random()];
          await ctx.step('keep', () => then);
          await ctx.sleep(5000);
          return { first, then };
        },
      });`);
    const id = await it.begin('chance');
    const began = it.clock.now();
    await it.until(id, 'waiting');
    await it.wakeAfter(5000);
    await expect.poll(() => it.states(id)).toContain('sleep:2 waiting');
    await it.until(id, 'waiting');
    await it.wakeAfter(5000);
    const run = await it.until(id, 'succeeded', 'failed');
    const { first, then } = run.output as { first: [number, number, string]; then: [number, number] };
    expect((await it.step(id, 'main.keep')).output).toEqual(first);
    expect((await it.step(id, 'main.keep:2')).output).toEqual(then);
    expect([first[0], then[0]]).toEqual([began, began + 5000]);
    expect(first[2]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(first[1]).not.toBe(then[1]);
  });
});

describe('ctx.all', () => {
  test('runs steps and branches in parallel; a ready branch does not wait for the others', async () => {
    const it = await startCode(`
      export const wide = defineWorkflow({
        id: 'wide',
        run: async (ctx) => {
          const seen = [];
          const [a, b, nested] = await ctx.all([
            ctx.step('one', () => 1),
            async () => {
              await ctx.waitForSignal('go');
              return ctx.step('after', () => 2);
            },
            async () => ctx.all([ctx.step('one', () => 3), async () => ctx.step('slow', () => new Promise((done) => setTimeout(done, 3000, 4)))]),
          ]);
          return { a, b, nested };
        },
      });`);
    const id = await it.begin('wide');
    await expect.poll(() => it.states(id)).toContain('slow@1-2.1-1 running');
    await it.services.runs.signal('default', id, 'go', null);
    // While the slow one still runs.
    await expect.poll(() => it.states(id), { interval: 5 }).toContain('after@1-1 succeeded');
    expect(await it.states(id)).toContain('slow@1-2.1-1 running');
    const run = await it.until(id, 'succeeded', 'failed');
    expect(run.output).toEqual({ a: 1, b: 2, nested: [3, 4] });
    expect((await it.states(id)).toSorted()).toEqual([
      'after@1-1 succeeded',
      'go@1-1 succeeded',
      'one succeeded',
      'one@1-2 succeeded',
      'slow@1-2.1-1 succeeded',
    ]);
  });

  test('is suspended when every branch waits, and waits for all before it fails', async () => {
    const it = await startCode(`
      export const waits = defineWorkflow({
        id: 'waits',
        run: async (ctx) => {
          try {
            await ctx.all([
              ctx.step('bad', () => { throw new Error('no'); }),
              ctx.sleep('short', 1000),
              async () => { await ctx.sleep('long', 9000); await ctx.step('late', () => 1); },
            ]);
          } catch (error) {
            return { caught: error.message, step: error.step, code: error.code };
          }
        },
      });`);
    const id = await it.begin('waits');
    await it.until(id, 'waiting');
    expect(await it.states(id)).toEqual(['bad failed', 'short waiting', 'long@1-2 waiting']);
    const run = await it.moveUntil(id, 1000, 'succeeded', 'failed');
    expect(run.output).toEqual({ caught: 'no', step: 'bad', code: 'STEP_FAILED' });
    expect(await it.states(id)).toContain('late@1-2 succeeded');
  });

  test('accepts more branches than the limit of concurrent calls', async () => {
    const it = await startCode(`
      export const many = defineWorkflow({
        id: 'many',
        run: async (ctx) => (await ctx.all(Array.from({ length: 200 }, (_, i) => ctx.step('n', () => i)))).length,
      });`);
    const id = await it.begin('many');
    expect(await it.until(id, 'succeeded', 'failed')).toMatchObject({ error: null, output: 200 });
  });
});

describe('a step that fails', () => {
  test('is repeated by the default policy only when it is idempotent or keyed, by its own policy always', async () => {
    const it = await startCode(`
      const retry = { maxAttempts: 2, jitter: 'none', initialMs: 1000 };
      const refuse = () => { throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }); };
      const broken = () => { throw new Error('broken'); };
      export const careful = defineWorkflow({
        id: 'careful',
        steps: { retry },
        run: async (ctx) => {
          const attempt = async (name, run, options) => {
            try { await ctx.step(name, run, options); } catch {}
          };
          await attempt('plain', refuse, {});
          await attempt('harmless', refuse, { idempotent: true });
          await attempt('keyed', refuse, { idempotencyKey: 'once' });
          await attempt('own', refuse, { retry });
          await attempt('thrown', broken, { retry });
          await attempt('inherited', broken, { idempotent: true });
        },
      });`);
    const id = await it.begin('careful');
    await it.moveUntil(id, 1000, 'succeeded', 'failed');
    const attempts = (await it.steps(id)).map((step) => [step.id.replace('main.', ''), step.attempts]);
    expect(Object.fromEntries(attempts)).toEqual({
      plain: 1,
      harmless: 2,
      keyed: 2,
      own: 2,
      thrown: 2,
      inherited: 1,
    });
  });

  test('is retried by its error class; uncaught it fails the run like any step', async () => {
    const it = await startCode(`
      let tries = 0;
      export const flaky = defineWorkflow({
        id: 'flaky',
        steps: { idempotent: true, retry: { maxAttempts: 3, jitter: 'none', initialMs: 1000 } },
        run: async (ctx) => {
          await ctx.step('net', ({ attempt }) => {
            if (attempt < 3) throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
          });
          await ctx.step('own', () => fail('OUT_OF_STOCK', 'nothing left', { sku: 'a' }));
        },
      });`);
    const id = await it.begin('flaky');
    const run = await it.moveUntil(id, 1000, 'succeeded', 'failed');
    expect(run.error).toEqual({
      code: 'STEP_FAILED',
      message: 'The step "own" failed: nothing left',
      details: {
        step: 'main.own',
        error: { code: 'OUT_OF_STOCK', message: 'nothing left', details: { sku: 'a' } },
      },
    });
    const { history } = await it.step(id, 'main.net');
    expect(history.map(({ status, errorClass }) => [status, errorClass])).toEqual([
      ['failed', 'network'],
      ['failed', 'network'],
      ['succeeded', null],
    ]);
    expect((await it.step(id, 'main.own')).history).toMatchObject([{ errorClass: 'code' }]);
  });

  test('may be caught, and is recorded as failed', async () => {
    const it = await startCode(`
      export const saga = defineWorkflow({
        id: 'saga',
        run: async (ctx) => {
          await ctx.step('reserve', () => 1);
          try {
            await ctx.step('charge', () => { throw new Error('declined'); });
          } catch (error) {
            await ctx.sleep(1000);
            return ctx.step('release', () => [error.name, error.status]);
          }
        },
      });`);
    const id = await it.begin('saga');
    expect((await it.moveUntil(id, 1000, 'succeeded', 'failed')).output).toEqual([
      'WorkflowStepError',
      'failed',
    ]);
    expect((await it.step(id, 'main.charge')).attempts).toBe(1);
  });

  test('by its time limit ends the process if the signal is ignored, and other results of the run are kept', async () => {
    const it = await startCode(`
      export const slow = defineWorkflow({
        id: 'slow',
        run: async (ctx) => {
          const before = await ctx.step('before', () => 'kept');
          try {
            await ctx.step('deaf', () => new Promise(() => {}), { timeoutMs: 1000 });
          } catch (error) {
            return [before, error.status, error.code];
          }
        },
      });`);
    const id = await it.begin('slow');
    await expect.poll(() => it.states(id)).toContain('deaf running');
    const run = await it.moveUntil(id, 500, 'succeeded', 'failed');
    expect(run.output).toEqual(['kept', 'timed_out', 'EXECUTION_TIMEOUT']);
    expect((await it.step(id, 'main.before')).attempts).toBe(1);
  });

  test('fails alone when its process dies; the function gets the error', async () => {
    const it = await startCode(`
      export const dies = defineWorkflow({
        id: 'dies',
        run: async (ctx) => {
          try {
            await ctx.step('exit', () => process.exit(3));
          } catch (error) {
            return error.code;
          }
        },
      });`);
    const id = await it.begin('dies');
    expect((await it.until(id, 'succeeded', 'failed')).output).toBe('EXECUTION_ERROR');
  });
});

describe('forbidden calls of a function are reported', () => {
  const cases: Array<[what: string, body: string, message: RegExp]> = [
    ['a step in a step', "await ctx.step('a', () => ctx.step('b', () => 1))", /inside the step "a"/],
    ['a step nobody awaits', "ctx.step('lost', () => 1)", /"lost" was created but never awaited/],
    [
      'one that is begun and left',
      "ctx.step('left', () => new Promise(() => {})).catch(() => {})",
      /"left" was started but not awaited/,
    ],
    [
      'steps side by side without ctx.all',
      "await Promise.all([ctx.step('a', () => 1), ctx.step('b', () => 2)])",
      /concurrently with ctx\.all/,
    ],
    ['a name that is none', "await ctx.step('a b', () => 1)", /a step's name is/],
    [
      'a result that JSON would lose',
      "await ctx.step('map', () => ({ deep: new Map() }))",
      /holds under "deep" a Map|"deep" is a Map/,
    ],
    ['a bigint', "await ctx.step('big', () => 1n)", /a bigint/],
    [
      'a circle',
      "await ctx.step('circle', () => { const o = {}; o.o = o; return o; })",
      /cannot be stored as JSON/,
    ],
    ['too large an output', "await ctx.step('huge', () => 'x'.repeat(2_000_000))", /the limit is \d+/],
    ['a sleep until never', "await ctx.sleep('soon')", /ctx\.sleep: pass/],
    ['an odd item of ctx.all', 'await ctx.all([1])', /item 0 is neither/],
    ['another plugin without its permission', "await ctx.invoke('other/thing')", /permissions\.invoke/],
    ['a child without its permission', "await ctx.runWorkflow('other')", /permissions\.platform\.workflows/],
    ['what other kinds of steps could do', "await ctx.invoke('http')", /is not a command/],
    ['an error of its own', "throw new Error('boom')", /boom/],
  ];

  test.each(cases)('%s', async (_, body, message) => {
    const it = await startCode(`
      export const wrong = defineWorkflow({ id: 'wrong', run: async (ctx) => { ${body}; } });`);
    const run = await it.until(await it.begin('wrong'), 'failed', 'succeeded');
    expect(run.error?.message).toMatch(message);
  });

  test('a function that hangs between its steps is ended', async () => {
    const it = await startCode(`
      export const hangs = defineWorkflow({ id: 'hangs', run: async (ctx) => { await ctx.step('a', () => 1); await new Promise(() => {}); } });`);
    const id = await it.begin('hangs');
    await expect.poll(() => it.states(id)).toEqual(['a succeeded']);
    const run = await it.moveUntil(id, seconds(20), 'failed');
    expect(run.error).toMatchObject({
      code: 'EXECUTION_TIMEOUT',
      message: expect.stringContaining('did nothing for 60 s'),
    });
  });

  test('a thousand steps are the most', async () => {
    const it = await startCode(`
      export const endless = defineWorkflow({ id: 'endless', run: async (ctx) => { for (;;) await ctx.all(Array.from({ length: 100 }, () => ctx.sleep('s', 0))); } });`);
    const id = await it.begin('endless');
    await expect.poll(async () => (await it.run(id)).status, { timeout: 30_000 }).toBe('failed');
    expect((await it.run(id)).error).toMatchObject({
      code: 'VALIDATION_ERROR',
      message: expect.stringContaining('1000 steps'),
    });
    expect(await it.steps(id)).toHaveLength(1000);
  }, 40_000);
});

describe('changed code', () => {
  const flow = (body: string) => `
    export const flow = defineWorkflow({ id: 'flow', run: async (ctx) => { ${body} } });`;
  const OLD =
    "await ctx.step('reserve', () => 1); await ctx.sleep('pause', 60_000); return ctx.step('ship', () => 2);";

  test.each([
    [
      'another step in the place of one',
      "await ctx.step('hold', () => 1); await ctx.sleep('pause', 60_000);",
      'step "reserve"',
      'step "hold"',
    ],
    [
      'another kind of step',
      "await ctx.step('reserve', () => 1); await ctx.waitForSignal('pause');",
      'step "pause" (wait)',
      'step "pause" (signal)',
    ],
    ['a step less', "return ctx.step('reserve', () => 1);", 'step "pause" (wait)', 'the end'],
  ])('%s fails the run, which names both', async (_, body, expected, found) => {
    const it = await startCode(flow(OLD));
    const id = await it.begin('flow');
    await it.until(id, 'waiting');
    await it.rewrite(flow(body));
    await it.wakeAfter(minutes(1));
    const { error } = await it.until(id, 'failed', 'succeeded');
    expect(error).toMatchObject({ code: 'WORKFLOW_DEFINITION_CHANGED', details: { expected, found } });
  });

  test('that takes the same steps goes on, with what comes after them', async () => {
    const it = await startCode(flow(OLD));
    const id = await it.begin('flow');
    await it.until(id, 'waiting');
    await it.rewrite(
      flow(
        "await ctx.step('reserve', () => 'new'); await ctx.sleep('pause', 1); return ctx.step('more', () => 3);",
      ),
    );
    await it.wakeAfter(minutes(1));
    const run = await it.until(id, 'failed', 'succeeded');
    expect(run.output).toBe(3);
    expect((await it.step(id, 'main.reserve')).output).toBe(1);
  });

  test('runs again from a step, with what was before it, its time and its chance', async () => {
    const broken =
      "const id = ctx.uuid(); const a = await ctx.step('a', () => id); await ctx.step('b', () => { throw new Error('bug'); }); return [a, id];";
    const it = await startCode(flow(broken));
    const id = await it.begin('flow');
    await it.until(id, 'failed');
    await it.rewrite(flow(broken.replace("{ throw new Error('bug'); }", '4')));
    const who = { tenantId: 'default', hostId: 'x', requestId: 'r', traceId: 't' };
    const again = await it.services.reruns.rerun('default', id, { fromStep: 'main.b' }, who);
    const { output } = await it.until(again.id, 'succeeded', 'failed');
    const [a, drawn] = output as string[];
    expect(a).toBe(drawn);
    expect((await it.step(again.id, 'main.a')).finishedAt).toBe((await it.step(id, 'main.a')).finishedAt);
    expect((await it.eventTypes(again.id)).filter((type) => type.endsWith('main.a'))).toEqual([]);
  });
});

test.each([
  ['network', { code: 'ECONNRESET' }],
  ['network', { cause: { code: 'ECONNREFUSED' } }],
  ['network', { code: 'UPSTREAM_UNAVAILABLE' }],
  ['timeout', { name: 'TimeoutError' }],
  ['rate_limit', { errorClass: 'rate_limit' }],
  ['code', { code: 'OUT_OF_STOCK' }],
  ['code', {}],
])('a thrown error is of class %s in commands, jobs and code: %o', async (errorClass, thrown) => {
  const it = await startCode(
    `
    const broken = (fields) => { throw Object.assign(new TypeError('fetch failed'), fields); };
    export const command = defineCommand({ execute: (ctx, fields) => broken(fields) });
    export const work = (ctx, fields) => broken(fields);
    export const flow = defineWorkflow({ id: 'flow', run: (ctx, fields) => ctx.step('s', () => broken(fields)) });`,
    {
      commands: [{ id: 'fail', handler: 'flows.js#command' }],
      jobs: [{ id: 'work', handler: 'flows.js#work' }],
    },
  );
  const command = await it.start({ steps: [{ uses: 'code/fail', with: thrown }] });
  const { job } = await it.call(submitJob, { body: { handler: 'code/work', input: thrown } as never });
  for (const id of [command, await it.begin('flow', thrown), job.id]) {
    await it.until(id, 'failed');
    expect((await it.steps(id))[0]!.history[0]).toMatchObject({ status: 'failed', errorClass });
  }
});

describe('other work', () => {
  test('of plugins and workflows is done between two passes, and needs no permission of its own plugin', async () => {
    const it = await startCode(
      `
      export const add = defineCommand({ execute: (ctx, { a, b }) => ({ sum: a + b, host: ctx.host, step: ctx.hostContext.stepId }) });
      export const child = defineWorkflow({ id: 'child', run: async (ctx, input) => ctx.step('double', () => input.n * 2) });
      export const parent = defineWorkflow({
        id: 'parent',
        run: async (ctx) => {
          const sums = await ctx.all([1, 2, 3].map((a) => ctx.invoke('code/add', { a, b: 1 })));
          return { sums, doubled: await ctx.runWorkflow('child', { n: 21 }) };
        },
      });`,
      {
        commands: [{ id: 'add', handler: 'flows.js#add' }],
        permissions: { platform: { workflows: true } },
      },
    );
    const id = await it.begin('parent');
    const run = await it.until(id, 'succeeded', 'failed');
    expect(run.error).toBeNull();
    expect(run.output).toMatchObject({
      sums: [
        { sum: 2, host: 'workflow', step: 'main.add' },
        { sum: 3, step: 'main.add:2' },
        { sum: 4, step: 'main.add:3' },
      ],
      doubled: 42,
    });
  });

  test('a command cannot stand in for a workflow, nor a workflow for a step', async () => {
    const it = await startCode(
      `
      export const add = defineCommand({ execute: () => 1 });
      export const flow = defineWorkflow({ id: 'flow', run: async () => 1 });`,
      {
        commands: [
          { id: 'add', handler: 'flows.js#add' },
          { id: 'flow', handler: 'flows.js#flow' },
        ],
        workflows: [
          { id: 'add', handler: 'flows.js#add' },
          { id: 'renamed', handler: 'flows.js#flow' },
        ],
      },
    );
    const errorOf = async (id: string) => (await it.until(id, 'failed')).error;
    expect(await errorOf(await it.begin('add'))).toMatchObject({ code: 'INVALID_HANDLER' });
    expect((await errorOf(await it.begin('renamed')))?.message).toContain('both ids must be the same');
    const asStep = await it.start({ steps: [{ id: 's', uses: 'code/flow' }] });
    expect((await errorOf(asStep))?.details).toMatchObject({ error: { code: 'HOST_MISMATCH' } });
  });
});

describe('cancelling', () => {
  const source = (body: string) => `
    export const flow = defineWorkflow({ id: 'flow', run: async (ctx) => { ${body} } });`;

  test('aborts the signal of the step, and ends a process that ignores it', async () => {
    const it = await startCode(
      source(`
        await ctx.all([
          ctx.step('polite', ({ signal }) => new Promise((_, no) => {
            signal.addEventListener('abort', () => { ctx.log.info('heard'); no(signal.reason); });
            ctx.log.info('begun');
          })),
          ctx.step('deaf', () => new Promise(() => {})),
        ]);
        await ctx.step('never', () => 1);`),
    );
    const id = await it.begin('flow');
    const said = (what: string) => it.logs.lines.some(({ message }) => message === what);
    await expect.poll(() => said('begun')).toBe(true);
    expect(await it.states(id)).toEqual(['polite running', 'deaf running']);
    expect(await it.services.runs.cancel('default', id)).toMatchObject({ cancelled: true });
    await expect.poll(() => said('heard')).toBe(true);
    await expect.poll(() => it.states(id)).toEqual(['polite cancelled', 'deaf running']);
    await it.moveUntil(id, seconds(1), 'cancelled');
    expect(await it.states(id)).toEqual(['polite cancelled', 'deaf cancelled']);
    await expect(it.services.runs.cancel('default', id)).rejects.toMatchObject({
      code: 'WORKFLOW_ALREADY_CANCELLED',
    });
  });

  test('while it waits ends it, and a time limit of the run does too', async () => {
    const it = await startCode(source("await ctx.step('a', () => 1); await ctx.waitForSignal('never');"), {
      workflows: [{ id: 'flow', handler: 'flows.js#flow', timeoutMs: 60_000 }],
    });
    const [one, two] = [await it.begin('flow'), await it.begin('flow')];
    await it.until(one, 'waiting');
    await it.until(two, 'waiting');
    await it.services.runs.cancel('default', one);
    await it.until(one, 'cancelled');
    expect(await it.states(one)).toEqual(['a succeeded', 'never cancelled']);
    await it.moveUntil(two, minutes(1), 'timed_out');
  });
});

test('is registered from manifests only; faults of an entry and of its triggers are reported', async () => {
  const handler = 'flows.js#flow';
  const started = (webhook: object) => ({
    id: 'w',
    handler,
    on: { webhook: { pluginId: 'code', event: 'x', ...webhook } },
  });
  const it = await startCode("export const flow = defineWorkflow({ id: 'flow', run: async () => 1 });", {
    workflows: [
      { id: 'quiet', handler, on: { manual: false } },
      { id: 'both', handler, jobs: {} },
      started({ if: 'input.a == 1' }),
      started({ input: { a: cel('delivery.payload.') } }),
      started({ event: 'a b' }),
    ],
  });
  const { items, faults } = await it.call(listWorkflows);
  expect(items.map(({ id, jobs }) => [id, jobs])).toEqual([['quiet', ['main']]]);
  expect(faults.map(({ path, message }) => `${path}: ${message}`)).toEqual([
    'jobs: is not a known key',
    expect.stringMatching(/^on\.webhook\.if: "input\.a" is not there/),
    expect.stringMatching(/^on\.webhook\.input\.a: /),
    expect.stringMatching(/^on\.webhook/),
  ]);
  await expect(it.begin('quiet')).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
    message: expect.stringContaining(
      'on.manual: false. Only its schedules and webhooks and the ends of other runs start it.',
    ),
  });
  const sent = { id: 'flow', handler, plugin: 'code' };
  await expect(it.call(startRun, { body: { definition: sent } as never })).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
  });
});

test('a process of an earlier replay cannot write', async () => {
  const it = await startCode(`
    export const flow = defineWorkflow({ id: 'flow', run: async (ctx) => ctx.step('a', () => new Promise((done) => setTimeout(done, 300, 1))) });`);
  const id = await it.begin('flow');
  await expect.poll(() => it.states(id)).toEqual(['a running']);
  const settle = (token: string) =>
    it.fetch('/internal/workflows/steps/settle', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        runId: id,
        token,
        step: { id: 'a', attempt: 1, outcome: { output: 'forged' } },
      }),
    });
  expect((await settle('of-an-earlier-pass')).status).toBe(409);
  expect((await it.until(id, 'succeeded', 'failed')).output).toBe(1);
});
