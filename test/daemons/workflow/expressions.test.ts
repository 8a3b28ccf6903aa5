import { describe, expect, test } from 'vitest';
import { compileTemplate } from '../../../src/daemons/workflow/domain/definition/templates.ts';
import { Budget, OverBudget } from '../../../src/kit/expressions/budget.ts';
import type { JsonValue } from '../../../src/store/ports/index.ts';
import { cel, startWorkflow, type TestWorkflow } from './support/workflow.ts';

/** `cel.bind` within `cel.bind`: each level uses the one before it twice. */
function doubled(first: string, twice: (name: string) => string, levels = 28): string {
  let text = `x${levels}`;
  for (let n = levels; n > 0; n--) text = `cel.bind(x${n}, ${twice(`x${n - 1}`)}, ${text})`;
  return `cel.bind(x0, ${first}, ${text})`;
}

const EMPTY_SCOPE = { run: {}, matrix: {}, steps: {}, needs: {}, jobs: {}, state: 'success' } as const;
const LIST = Array.from({ length: 1000 }, (_, i) => i);
const INPUT = {
  list: LIST,
  text: 'x'.repeat(5000),
  almost: `${'a'.repeat(60)}!`,
  digits: '1'.repeat(400_000),
};

const LARGE_LIST = doubled('[0]', (x) => `${x} + ${x}`);
const NESTED_LISTS = doubled('[0]', (x) => `[${x}, ${x}]`);
/** Two million characters, that are written when they are first read. */
const JOINED = `(${doubled('"xxxxxxxx"', (x) => `${x} + ${x}`, 18)})`;
const ENDLESS_PATTERN = 'input.almost.matches("^(a+)+$")';

const ATTACKS: Record<string, string> = {
  'a list joined to itself again and again': `size(${LARGE_LIST})`,
  'lists within lists as the result': NESTED_LISTS,
  'lists within lists as text': `size(toJson(${NESTED_LISTS}))`,
  'lists within lists compared': `${NESTED_LISTS} == ${NESTED_LISTS}`,
  'maps within maps': doubled('{"a": 1}', (x) => `{"a": ${x}, "b": ${x}}`),
  'a text joined to itself again and again': `size(${doubled('"xxxxxxxx"', (x) => `${x} + ${x}`)})`,
  'loops within loops': 'size(input.list.map(a, input.list.map(b, input.list.map(c, a + b + c))))',
  'a loop that finds nothing':
    'input.list.exists(a, input.list.exists(b, input.list.exists(c, a + b + c < 0)))',
  'a loop whose every item fails': 'input.list.all(a, input.list.all(b, input.list.all(c, c.none == a)))',
  'a large text joined by another': 'size(input.list.map(i, input.text).join(input.text))',
  'a long text that is searched for a long one': `size(${doubled('input.digits', (x) => x, 1)}.split("1").map(i, input.digits.contains(input.digits + "2")))`,
  'an error that another operand would hide': `size(${LARGE_LIST}) == 1 || true`,
  'a pattern that backtracks': ENDLESS_PATTERN,
  'keys that are joined texts': `size(input.list.map(i, {(${JOINED} + string(i)): 1}))`,
  'a joined text as an index': `size(input.list.map(i, input[?${JOINED} + string(i)].orValue(1)))`,
  'a joined text among the keys of a map': `size(input.list.filter(i, (${JOINED} + string(i)) in input))`,
  'a joined text among the items of a list': `size(input.list.filter(i, (${JOINED} + "a") in [${JOINED} + "b"]))`,
  'a list as a key': `size({(${NESTED_LISTS}): 1})`,
  'a number of 400,000 digits': 'duration(input.digits + "s") == duration("1s")',
};

async function isAlive(it: TestWorkflow): Promise<void> {
  await it.until(
    await it.start(
      { steps: [{ uses: 'set', with: { v: cel('input.list.map(i, i)') } }] },
      { input: { list: [1] } },
    ),
    'succeeded',
  );
}

describe('an expression that exceeds its limits of time or memory fails its step', () => {
  test('whatever value it makes large', { timeout: 120_000 }, async () => {
    const it = await startWorkflow();
    const runs = await Promise.all(
      Object.entries(ATTACKS).map(async ([name, text]) => {
        const id = await it.start(
          { steps: [{ id: 'bad', uses: 'set', with: { v: cel(text) } }] },
          { input: INPUT },
        );
        return { name, id };
      }),
    );
    const found = await Promise.all(
      runs.map(async ({ name, id }) => {
        const { error } = await it.until(id, 'failed', 'succeeded');
        const step = await it.step(id, 'main.bad');
        return [name, step.error?.code, /jobs\.main\.steps\[0\]\.with/.test(error?.message ?? '')];
      }),
    );
    expect(found).toEqual(runs.map(({ name }) => [name, 'EXPRESSION_LIMIT_EXCEEDED', true]));
    await isAlive(it);
  });

  test.each(
    Object.entries({
      'the `if` of a step': { steps: [{ uses: 'set', if: cel(`${LARGE_LIST} == []`) }] },
      'the `with` of an effect': {
        steps: [{ uses: 'workflow', with: { id: 'none', input: cel(LARGE_LIST) } }],
      },
      'an idempotency key': {
        steps: [{ uses: 'workflow', with: { id: 'none' }, idempotencyKey: cel(`toJson(${LARGE_LIST})`) }],
      },
      'the `if` of a job': { jobs: { a: { if: cel(`${LARGE_LIST} == []`), steps: [{ uses: 'set' }] } } },
      'a matrix': { jobs: { a: { strategy: { matrix: { v: cel(LARGE_LIST) } }, steps: [{ uses: 'set' }] } } },
      'the outputs of a job': { jobs: { a: { outputs: { v: cel(LARGE_LIST) }, steps: [{ uses: 'set' }] } } },
      'the outputs of the run': {
        outputs: { v: cel(LARGE_LIST) },
        jobs: { a: { steps: [{ uses: 'set' }] } },
      },
      'a pattern in an `if`': { steps: [{ uses: 'set', if: ENDLESS_PATTERN }] },
    }),
  )('in %s', { timeout: 60_000 }, async (_, definition) => {
    const it = await startWorkflow();
    const id = await it.start(definition, { input: INPUT });
    const { error } = await it.until(id, 'failed');
    expect(error?.message).toMatch(/it does more than \d+ operations|it took longer than 1000 ms/);
    await isAlive(it);
  });

  test('in a concurrency key the start is refused', async () => {
    const it = await startWorkflow();
    const start = (key: string) =>
      it.start({ concurrency: { key: cel(key) }, steps: [{ uses: 'set' }] }, { input: INPUT });
    for (const key of [LARGE_LIST, ENDLESS_PATTERN])
      await expect(start(key)).rejects.toMatchObject({
        status: 400,
        code: 'EXPRESSION_LIMIT_EXCEEDED',
        details: { path: 'concurrency.key' },
      });
    await isAlive(it);
  });

  test('in the filter of a webhook the delivery starts no run, and reports the reason', async () => {
    const it = await startWorkflow();
    const definition = {
      id: 'filtered',
      on: {
        webhook: [{ pluginId: 'shop', event: 'order', if: `delivery.payload.almost.matches("^(a+)+$")` }],
      },
      jobs: { main: { steps: [{ uses: 'set' }] } },
    };
    it.services.definitions.register([{ source: 'filtered.yaml', definition }]);
    const delivery = {
      webhookId: 'd1',
      pluginId: 'shop',
      event: 'order',
      instanceId: '',
      payload: INPUT,
      receivedAt: 1,
    };
    const who = { tenantId: 'default', hostId: 'gateway', requestId: 'r', traceId: 't' };
    const { runs, refused } = await it.services.triggers.start(delivery as never, who);
    expect(runs).toEqual([]);
    expect(refused).toMatchObject([{ workflowId: 'filtered', code: 'EXPRESSION_LIMIT_EXCEEDED' }]);
  });

  test('while one tenant fills every thread, another still gets its value', async () => {
    const it = await startWorkflow();
    const bad = { steps: [{ uses: 'set', with: { v: cel(ENDLESS_PATTERN) } }] };
    const ids = await Promise.all(
      Array.from({ length: 8 }, () => it.start(bad, { input: INPUT, tenant: 'bad' })),
    );
    const good = await it.start(
      { steps: [{ id: 'ok', uses: 'set', with: { v: cel('"abc".matches("b")') } }] },
      { tenant: 'good' },
    );
    const { status } = await waitFor(it, good, 'good');
    expect(status).toBe('succeeded');
    // Eight of them take four seconds of both threads; tenants take turns.
    const states = await Promise.all(ids.map(async (id) => (await it.run(id, 'bad')).status));
    expect(states).toContain('running');
  });
});

async function waitFor(it: TestWorkflow, id: string, tenant: string) {
  await expect.poll(async () => (await it.run(id, tenant)).status, { timeout: 20_000 }).toBe('succeeded');
  return it.run(id, tenant);
}

describe('an expression within its limits gives its value, wherever it is evaluated', () => {
  test('small ones and large ones alike', async () => {
    const it = await startWorkflow();
    const id = await it.start(
      {
        outputs: { total: cel('jobs.main.outputs.sum'), all: cel('input.list.filter(i, i % 2 == 0)') },
        jobs: {
          main: {
            if: 'input.list.exists(i, i == 999)',
            outputs: { sum: cel('size(steps.a.output.v + steps.b.output.v)') },
            steps: [
              { id: 'a', uses: 'set', with: { v: cel('input.list.map(i, i * 2)') } },
              {
                id: 'b',
                uses: 'set',
                if: '"abc".matches("^a")',
                with: { v: cel('steps.a.output.v.filter(i, i < 10)') },
              },
              { id: 'c', uses: 'set', if: 'failure()' },
            ],
          },
        },
      },
      { input: INPUT },
    );
    const run = await it.until(id, 'succeeded');
    expect(run.output).toEqual({ total: 1005, all: LIST.filter((i) => i % 2 === 0) });
    expect((await it.steps(id)).map(({ status }) => status)).toEqual(['succeeded', 'succeeded', 'skipped']);
  });
});

describe('an unusable input schema is refused with the definition', () => {
  test.each([
    { $ref: '#' },
    { allOf: [{ $ref: '#' }] },
    { anyOf: [{ $ref: '#' }, { type: 'string' }] },
    { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } },
    { type: 'object', properties: { a: { $ref: '#/properties/a' } } },
    { type: 'object', properties: { a: { $ref: '#/none' } } },
    { type: 'object', properties: { a: 5 } },
    { type: 'object', required: 3 },
    { type: 'string', pattern: '(' },
    { $ref: 'https://example.com/schema' },
  ])('%j', async (inputs) => {
    const it = await startWorkflow();
    await expect(it.start({ inputs, steps: [{ uses: 'set' }] })).rejects.toMatchObject({
      status: 400,
      code: 'VALIDATION_ERROR',
      details: { issues: [{ path: 'inputs', message: expect.stringContaining('JSON Schema') }] },
    });
  });

  test('one that takes a part of its value at each turn is used, and a pattern has its time', async () => {
    const it = await startWorkflow();
    const tree = {
      $ref: '#/$defs/node',
      $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
    };
    const steps = [{ uses: 'set' }];
    await it.until(await it.start({ inputs: tree, steps }, { input: { next: { next: {} } } }), 'succeeded');
    await expect(it.start({ inputs: tree, steps }, { input: { next: { next: 5 } } })).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      details: { issues: [{ path: 'input.next.next' }] },
    });
    const inputs = { type: 'object', properties: { almost: { type: 'string', pattern: '^(a+)+$' } } };
    await expect(it.start({ inputs, steps }, { input: INPUT })).rejects.toMatchObject({
      code: 'EXPRESSION_LIMIT_EXCEEDED',
      message: 'input: it took longer than 1000 ms',
    });
  });
});

describe('evaluation in place costs no more than its budget', () => {
  /** A template, and the scope's input that makes it large. */
  const LARGE: Record<string, [template: JsonValue, input: JsonValue]> = {
    'keys that are joined texts': [
      cel(`cel.bind(j, ${JOINED}, size(input.map(i, {(j + string(i)): 1})))`),
      LIST.slice(0, 50),
    ],
    'an index that is a joined text': [cel(`input[?${JOINED}].orValue(1)`), {}],
    'a text of 100,000 characters': [
      cel(`cel.bind(t, ${doubled('"xxxxxxxx"', (x) => `${x} + ${x}`, 14)}, 1)`),
      {},
    ],
    'large input as text, again and again': [Array(500).fill(`x${cel('input')}`), Array(20_000).fill([])],
  };

  test.each(Object.entries(LARGE))('%s: not on the main thread', (_, [template, input]) => {
    const what = compileTemplate(template, [], []);
    expect(() => what.evaluate({ ...EMPTY_SCOPE, input }, new Budget(5000, false))).toThrow(OverBudget);
  });

  test('a path hands on what the run holds, and many of them are one large value', () => {
    const input = Array(20_000).fill([]);
    const budget = new Budget(5000, false);
    const once = compileTemplate({ body: cel('input') }, [], []);
    expect(once.evaluate({ ...EMPTY_SCOPE, input }, budget)).toEqual({ body: input });
    const often = compileTemplate(Array(1000).fill(cel('input')), [], []);
    expect(() => often.evaluate({ ...EMPTY_SCOPE, input }, budget)).toThrow('more than 4194304 characters');
  });

  test('a map keeps its keys, whatever they are', () => {
    const evaluate = (text: string) =>
      compileTemplate(cel(text), [], []).evaluate(
        { ...EMPTY_SCOPE, input: { a: 1 } },
        new Budget(5000, false),
      );
    expect(evaluate('{"a": 1, 2: [3], true: {"b": 2} }')).toEqual({ a: 1, '2': [3], true: { b: 2 } });
    expect(evaluate('{"con" + "structor": 1, "b": input["a"]}')).toEqual({ b: 1 });
    expect(evaluate('"a" in input && !("b" in input) && "x" in ["x"] && {"a": 2}["a"] == 2')).toBe(true);
  });
});
