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
