import { expect, test } from 'vitest';
import { ManifestV3 } from '../../../src/contracts/index.ts';
import { createPluginRouteTable } from '../../../src/daemons/plugin-routes/route-table.ts';
import { pluginOpenApi } from '../../../src/daemons/rest/domain/plugin-openapi.ts';
import { PluginSchemas } from '../../../src/daemons/rest/domain/plugin-schemas.ts';
import { createSchemaComponents } from '../../../src/http/json-schema.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';

const manifestWith = (command: object) =>
  ManifestV3.parse({
    schema: 'svc.plugin/3',
    id: 'demo',
    version: '1.0.0',
    commands: [{ id: 'a', handler: 'h.js#h', ...command }],
  });

const describeIn = async (files: Record<string, unknown>, $ref: string) => {
  const manifest = manifestWith({ input: { $ref } });
  const schemas = new PluginSchemas({
    manifest,
    readJson: async (file) => {
      if (!Object.hasOwn(files, file)) throw new Error(`no file ${file}`);
      return files[file];
    },
    printZod: async () => [],
    inspect: async () => [{ fault: 'nothing runs here' }],
    clock: manualClock(),
  });
  return (await schemas.ofHandler(manifest.commands[0]!)).input;
};

test('zod schemas and inline definitions are described by the plugin; a recursive one stays valid', async () => {
  const manifest = manifestWith({ output: { zod: './s.js#Tree' } });
  const schemas = new PluginSchemas({
    manifest,
    readJson: async () => ({}),
    printZod: async (asked) => {
      expect(asked).toEqual([{ zod: './s.js#Tree', io: 'output' }]);
      return [{ schema: { type: 'object', properties: { child: { $ref: '#' } } } }];
    },
    inspect: async () => [{ kind: 'command', method: null, input: { type: 'string' }, output: null }],
    clock: manualClock(),
  });
  expect(await schemas.ofHandler(manifest.commands[0]!)).toEqual({
    input: { type: 'string' },
    output: {
      $ref: '#/$defs/Self',
      $defs: { Self: { type: 'object', properties: { child: { $ref: '#/$defs/Self' } } } },
    },
  });
});

test('a schema is included with all its references, in its own file and others', async () => {
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
  ['a.json#/$defs/none', /a\.json#\/\$defs\/none does not exist/],
  ['https://example.com/x.json', /not a file of the plugin/],
])('%s is described as any value, with the reason', async (ref, reason) => {
  expect(await describeIn({ 'a.json': {} }, ref)).toEqual({ description: expect.stringMatching(reason) });
});

test('two definitions of one name are kept apart', async () => {
  const files = {
    'a.json': { $defs: { x: { anyOf: [{ $ref: 'b.json#/$defs/x' }] } } },
    'b.json': { $defs: { x: { type: 'string' } } },
  };
  expect(await describeIn(files, 'a.json#/$defs/x')).toEqual({
    $ref: '#/$defs/x',
    $defs: { x: { anyOf: [{ $ref: '#/$defs/x2' }] }, x2: { type: 'string' } },
  });
});

test('a schema that grows without bounds when expanded is reported as too large', async () => {
  const pointers = Array.from({ length: 200 }, (_, depth) => `#/chain${'/p'.repeat(depth)}`);
  const chain = pointers.reduce<object>((inner) => ({ p: inner }), { description: 'x'.repeat(100_000) });
  const files = { 's.json': { chain, $defs: { all: { anyOf: pointers.map(($ref) => ({ $ref })) } } } };
  expect(await describeIn(files, 's.json#/$defs/all')).toEqual({
    description:
      'The schema s.json#/$defs/all cannot be read: it exceeds 1048576 characters with its references',
  });
});

test('of a plugin with endless route schemas, the first ones are shown', async () => {
  const route = (path: string) => ({ method: 'POST', path, handler: 'h.js#h', input: { $ref: 's.json' } });
  const routes = Array.from({ length: 200 }, (_, index) => route(`/${index}`));
  const manifest = ManifestV3.parse({
    ...{ schema: 'svc.plugin/3', id: 'demo', version: '1.0.0' },
    rest: { basePath: '/v1/plugins/demo', routes },
  });
  const table = createPluginRouteTable([{ id: 'demo', version: '1.0.0', root: '/demo', manifest }]);
  let reads = 0;
  const schemas = new PluginSchemas({
    manifest,
    readJson: async () => {
      reads++;
      return { description: 'x'.repeat(100_000) };
    },
    printZod: async () => [],
    inspect: async () => [],
    clock: manualClock(),
  });
  const { paths } = await pluginOpenApi(table.routes, '1.0.0', () => schemas);
  const bodies = Object.values(paths).map((path) => JSON.stringify(path));
  const left = bodies.filter((text) => text.includes('Not shown: the schemas of this plugin are too large.'));
  expect([reads, bodies.length, left.length]).toEqual([1, 200, 200 - 41]);
});

test('tens of thousands of definitions of one name are numbered quickly', {
  timeout: 30_000,
}, async () => {
  const count = 25_000;
  const all = { allOf: Array.from({ length: count }, (_, n) => ({ $ref: `#/d/${n}/x` })) };
  const described = await describeIn({ 's.json': { all, d: Array(count).fill({ x: {} }) } }, 's.json#/all');
  expect(Object.keys(described!.$defs as object)).toHaveLength(count + 1);
  const components = createSchemaComponents();
  const $defs = Object.fromEntries(
    Array.from({ length: count }, (_, n) => [String.fromCodePoint(0x4e00 + n), { const: n }]),
  );
  components.lift({ $defs }, 'Schema');
  expect(Object.keys(components.schemas)).toHaveLength(count);
});

test('a failed schema query is repeated after a minute, not by each request for the description', async () => {
  const manifest = manifestWith({ input: { zod: './hangs.js#S' } });
  const clock = manualClock();
  let questions = 0;
  const schemas = new PluginSchemas({
    manifest,
    readJson: async () => ({}),
    printZod: async () => {
      questions++;
      throw new Error('it hangs');
    },
    inspect: async () => [],
    clock,
  });
  const ask = async () => (await schemas.ofHandler(manifest.commands[0]!)).input?.description;
  expect([await ask(), await ask(), questions]).toEqual([
    'The schema ./hangs.js#S cannot be read: it hangs',
    'The schema ./hangs.js#S cannot be read: it hangs',
    1,
  ]);
  clock.advance(60_000);
  await ask();
  expect(questions).toBe(2);
});
