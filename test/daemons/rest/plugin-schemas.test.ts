import { expect, test } from 'vitest';
import { ManifestV3 } from '../../../src/contracts/index.ts';
import { createPluginSchemas } from '../../../src/daemons/rest/domain/plugin-schemas.ts';

const manifestWith = (command: object) =>
  ManifestV3.parse({
    schema: 'svc.plugin/3',
    id: 'demo',
    version: '1.0.0',
    commands: [{ id: 'a', handler: 'h.js#h', ...command }],
  });

const describeIn = async (files: Record<string, unknown>, $ref: string) => {
  const manifest = manifestWith({ input: { $ref } });
  const schemas = createPluginSchemas({
    manifest,
    readJson: async (file) => {
      if (!Object.hasOwn(files, file)) throw new Error(`no file ${file}`);
      return files[file];
    },
    printZod: async () => [],
    inspect: async () => [{ fault: 'nothing runs here' }],
  });
  return (await schemas.ofHandler(manifest.commands[0]!)).input;
};

test("zod schemas and a definition's own are told by the plugin; one that contains itself stays sound", async () => {
  const manifest = manifestWith({ output: { zod: './s.js#Tree' } });
  const schemas = createPluginSchemas({
    manifest,
    readJson: async () => ({}),
    printZod: async (asked) => {
      expect(asked).toEqual([{ zod: './s.js#Tree', io: 'output' }]);
      return [{ schema: { type: 'object', properties: { child: { $ref: '#' } } } }];
    },
    inspect: async () => [{ kind: 'command', method: null, input: { type: 'string' }, output: null }],
  });
  expect(await schemas.ofHandler(manifest.commands[0]!)).toEqual({
    input: { type: 'string' },
    output: {
      $ref: '#/$defs/Self',
      $defs: { Self: { type: 'object', properties: { child: { $ref: '#/$defs/Self' } } } },
    },
  });
});

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
