import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createEvaluator } from '../../../src/daemons/workflow/domain/definition/evaluator.ts';
import { compileInputSchema } from '../../../src/daemons/workflow/domain/definition/input-schema.ts';
import { Budget, OverBudget } from '../../../src/kit/expressions/budget.ts';
import { startWorkflow } from './support/workflow.ts';

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
const manyKeys = Object.fromEntries(range(900).map((n) => [`key${n}`, { type: 'string' }]));
const STEPS = [{ uses: 'set' }];

/** Each is a schema whose check costs far more than reading the input. */
const ATTACKS: Record<string, [schema: object, input: unknown]> = {
  'choices that are no texts': [
    { type: 'array', items: { enum: range(900) } },
    range(2000).map((n) => n + 1000),
  ],
  'choices that are texts': [
    { type: 'array', items: { enum: range(2000).map((n) => `choice ${n}`) } },
    Array(500).fill('none'),
  ],
  'a large default': [
    { type: 'array', items: { type: 'object', properties: { a: { default: 'x'.repeat(200_000) } } } },
    Array(1500).fill({}),
  ],
  'many keys that are required': [
    { type: 'array', items: { type: 'object', properties: manyKeys, required: Object.keys(manyKeys) } },
    Array(2000).fill({}),
  ],
  'lists of types': [
    {
      type: ['array', 'null'],
      items: { type: ['array', 'null'], items: { type: ['string', 'null', 'boolean'] } },
    },
    Array(500).fill([1, 2, 3]),
  ],
  'a large constant': [{ type: 'array', items: { const: 'x'.repeat(100_000) } }, Array(500).fill('none')],
};

describe('the cost of an input check is computed before it is done', () => {
  test.each(Object.entries(ATTACKS))('%s: not on the main thread', (_, [schema, input]) => {
    const { spendOnCheck } = compileInputSchema(schema);
    expect(() => spendOnCheck(input as never, new Budget(5000, false))).toThrow(OverBudget);
  });

  test('an ordinary input is checked in place, with its defaults and its faults', async () => {
    const evaluator = createEvaluator({
      run: () => Promise.reject(new Error('A thread was asked.')),
      close: async () => {},
    });
    const item = {
      type: 'object',
      properties: { sku: { type: 'string' }, count: { type: 'integer', default: 1 } },
      required: ['sku'],
    };
    const schema = compileInputSchema({
      type: 'object',
      properties: {
        region: { enum: ['eu', 'us'], default: 'eu' },
        note: { type: ['string', 'null'] },
        items: { type: 'array', items: item },
      },
    });
    const items = Array(50).fill({ sku: 'a' });
    expect(
      await evaluator.check(schema, { items, note: null }, { part: 'input', tenantId: 'default' }),
    ).toEqual({
      value: { region: 'eu', note: null, items: Array(50).fill({ sku: 'a', count: 1 }) },
    });
    expect(
      await evaluator.check(schema, { items: [{}] }, { part: 'input', tenantId: 'default' }),
    ).toMatchObject({
      issues: [{ path: ['items', 0, 'sku'] }],
    });
  });

  test('of many faults a hundred are reported, and defaults do not inflate an input to megabytes', () => {
    const numbers = compileInputSchema({ type: 'array', items: { type: 'number' } });
    expect(numbers.check(Array(5000).fill('no'))).toMatchObject({ issues: { length: 100 } });
    const [schema, input] = ATTACKS['a large default']!;
    expect(compileInputSchema(schema).check(input as never)).toEqual({ tooLarge: true });
  });

  test('in the service such inputs are refused, and others start', { timeout: 60_000 }, async () => {
    const it = await startWorkflow();
    const codes = await Promise.all(
      ['choices that are no texts', 'a large default'].map(async (name) => {
        const [items, input] = ATTACKS[name]!;
        const inputs = { type: 'object', properties: { items } };
        return it.start({ inputs, steps: STEPS }, { input: { items: input } }).catch(({ code }) => code);
      }),
    );
    expect(codes).toEqual(['EXPRESSION_LIMIT_EXCEEDED', 'PAYLOAD_TOO_LARGE']);
    await it.until(await it.start({ inputs: { type: 'object' }, steps: STEPS }), 'succeeded');
  });
});

/** Counts what is read of a value and all that it holds. */
function countReads<Value extends object>(value: Value): { counted: Value; reads(): number } {
  let reads = 0;
  const known = new WeakMap<object, object>();
  function wrap<One>(one: One): One {
    if (typeof one !== 'object' || one === null) return one;
    const before = known.get(one);
    if (before) return before as One;
    const proxy = new Proxy(one, {
      get(target, key) {
        reads++;
        return wrap(Reflect.get(target, key));
      },
    });
    known.set(one, proxy);
    return proxy;
  }
  return { counted: wrap(value), reads: () => reads };
}

/** Half of the definitions name one that names all of the other half. */
function referring(count: number): object {
  const refs = (prefix: string) => range(count).map((n) => ({ $ref: `#/$defs/${prefix}${n}` }));
  return {
    anyOf: refs('a'),
    $defs: {
      all: { allOf: refs('b') },
      ...Object.fromEntries(range(count).map((n) => [`a${n}`, { $ref: '#/$defs/all' }])),
      ...Object.fromEntries(range(count).map((n) => [`b${n}`, { type: 'string' }])),
    },
  };
}

describe('a schema of inputs is compiled at a cost of its size', () => {
  test('however its references lead to each other', () => {
    const [small, large] = [50, 150].map((count) => {
      const { counted, reads } = countReads(referring(count));
      expect(compileInputSchema(counted).check('text')).toEqual({ value: 'text' });
      return reads();
    });
    expect(large! / small!).toBeLessThan(4);
  });

  let deep: object = {};
  for (let level = 0; level < 200; level++) deep = { items: deep };
  test.each<[string, object, RegExp]>([
    ['many references', referring(2000), /more than 1000 parts/],
    [
      'many properties',
      { type: 'object', properties: Object.fromEntries(range(1001).map((n) => [n, {}])) },
      /more than 1000 parts/,
    ],
    ['many choices', { enum: range(1001) }, /more than 1000 parts/],
    [
      'many spellings of one reference',
      {
        anyOf: range(20).map((n) => ({ $ref: `#/$defs/${'%6D'.repeat(n + 1)}${'m'.repeat(19 - n)}` })),
        $defs: { ['m'.repeat(20)]: { allOf: range(60).map(() => ({})) } },
      },
      /more than 1000 parts/,
    ],
    ['levels', deep, /deeper than 100 levels/],
    ['the same type twice', { type: ['array', 'array'] }, /same type twice/],
    [
      'a reference into a definition',
      { $ref: '#/$defs/a/items', $defs: { a: { items: {} } } },
      /has no target/,
    ],
    ['a reference to what every object has', { $ref: '#/$defs/constructor', $defs: {} }, /has no target/],
  ])('%s are refused', (_, schema, message) => {
    expect(() => compileInputSchema(schema)).toThrow(message);
  });

  test('and none is kept under its id', () => {
    compileInputSchema({ type: 'string', id: 'kept-for-good' });
    expect(Object.keys(z.toJSONSchema(z.globalRegistry).schemas)).not.toContain('kept-for-good');
  });
});
