import { expect, test } from 'vitest';
import { createPluginSchemas } from '../../../src/daemons/rest/domain/plugin-schemas.ts';

const describeIn = (files: Record<string, unknown>, $ref: string) =>
  createPluginSchemas(async (file) => {
    if (!Object.hasOwn(files, file)) throw new Error(`no file ${file}`);
    return files[file];
  }).describe({ $ref });

test('a schema is brought along with all it refers to, in its file and in others', async () => {
  const files = {
    'schemas/order.json': {
      $id: 'https://example.com/order',
      type: 'object',
      properties: { lines: { $ref: '#/$defs/lines' }, buyer: { $ref: '../people.json#/$defs/a~1b' } },
      $defs: { lines: { type: 'array', items: { $ref: 'order.json' } } },
    },
    'people.json': { $defs: { 'a/b': { type: 'string' } } },
  };
  expect(await describeIn(files, 'schemas/order.json')).toEqual({
    $ref: '#/$defs/order',
    $defs: {
      order: {
        type: 'object',
        properties: { lines: { $ref: '#/$defs/lines' }, buyer: { $ref: '#/$defs/a_1b' } },
      },
      lines: { type: 'array', items: { $ref: '#/$defs/order' } },
      a_1b: { type: 'string' },
    },
  });
});

test.each([
  ['gone.json', /no file gone\.json/],
  ['a.json#/$defs/none', /nothing is at a\.json#\/\$defs\/none/],
  ['https://example.com/x.json', /no file of the plugin/],
])('%s is described as anything, with the reason', async (ref, reason) => {
  expect(await describeIn({ 'a.json': {} }, ref)).toEqual({ description: expect.stringMatching(reason) });
});

test('two definitions of one name stay apart', async () => {
  const files = {
    'a.json': { $defs: { x: { anyOf: [{ $ref: 'b.json#/$defs/x' }] } } },
    'b.json': { $defs: { x: { type: 'string' } } },
  };
  expect(await describeIn(files, 'a.json#/$defs/x')).toEqual({
    $ref: '#/$defs/x',
    $defs: { x: { anyOf: [{ $ref: '#/$defs/x2' }] }, x2: { type: 'string' } },
  });
});
