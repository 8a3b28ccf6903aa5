import { expect, test } from 'vitest';
import { withDefaults } from '../../src/plugins/index.ts';

test("the defaults of a plugin's settings are filled in, nested ones and those of references too", () => {
  const schema = {
    type: 'object',
    required: ['region'],
    properties: {
      region: { type: 'string', default: 'eu' },
      limits: { default: {}, properties: { perMinute: { type: 'number', default: 60 } } },
      targets: { type: 'array', items: { $ref: '#/$defs/target' } },
    },
    $defs: { target: { properties: { port: { default: 443 }, constructor: { default: 'x' } } } },
  };
  expect(withDefaults(schema, {})).toEqual({ region: 'eu', limits: { perMinute: 60 } });
  expect(withDefaults(schema, { region: 'us', limits: {}, targets: [{ port: 80 }, {}] })).toEqual({
    region: 'us',
    limits: { perMinute: 60 },
    targets: [
      { port: 80, constructor: 'x' },
      { port: 443, constructor: 'x' },
    ],
  });
  expect(withDefaults(undefined, { a: 1 })).toEqual({ a: 1 });
});

test('a schema that holds itself fills in each level that was given, and no more', () => {
  const node = { default: {}, properties: { port: { default: 1 }, next: { $ref: '#/$defs/node' } } };
  const schema = { properties: { first: { $ref: '#/$defs/node' } }, $defs: { node } };
  expect(withDefaults(schema, {})).toEqual({ first: { port: 1 } });
  expect(withDefaults(schema, { first: { next: { next: { port: 5 } } } })).toEqual({
    first: { port: 1, next: { port: 1, next: { port: 5 } } },
  });
  const itself = { default: {}, properties: { a: { $ref: '#' }, b: { $ref: '#' } } };
  expect(withDefaults(itself, {})).toEqual({});
  expect(withDefaults({ allOf: Array(8).fill({ $ref: '#' }), default: 1 }, undefined)).toBe(1);
});

/** Each definition names the next one twice. */
function doubling(levels: number, last: object): object {
  const $defs: Record<string, object> = { [`d${levels}`]: last };
  for (let n = 0; n < levels; n++) $defs[`d${n}`] = { allOf: Array(2).fill({ $ref: `#/$defs/d${n + 1}` }) };
  return { $ref: '#/$defs/d0', $defs };
}

const KEYS = Object.fromEntries(
  Array.from({ length: 500 }, (_, n) => [`key${n}`, { $ref: '#/$defs/large' }]),
);

test.each<[string, object]>([
  ['references that double', doubling(17, { default: 1 })],
  ['a large default at many keys', { properties: KEYS, $defs: { large: { default: 'x'.repeat(500_000) } } }],
  ['many values at many keys', { properties: KEYS, $defs: { large: { default: Array(1000).fill({}) } } }],
  ['keys copied again and again', { allOf: Array(400).fill({ properties: { a: {} } }), default: KEYS }],
])('%s are a fault of the schema', (_, schema) => {
  expect(() => withDefaults(schema, (schema as { default?: unknown }).default ?? {})).toThrow(
    'takes more than 100000 steps',
  );
});

test('ten thousand settings of an ordinary schema are filled in', () => {
  const schema = { properties: { hosts: { items: { properties: { port: { default: 443 } } } } } };
  const filled = withDefaults(schema, { hosts: Array(10_000).fill({ name: 'a' }) });
  expect(filled).toEqual({ hosts: Array(10_000).fill({ name: 'a', port: 443 }) });
});
