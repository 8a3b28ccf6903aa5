import { expect, expectTypeOf, onTestFinished, test } from 'vitest';
import { defineCommand, defineManifest, defineRoute, fail, ok, stream, z } from '../../src/sdk/index.ts';
import { type CommandResult, createTestHost } from '../../src/testing/index.ts';
import { writeFiles } from '../daemons/marketplace/support.ts';
import { tempDir } from '../support/daemon.ts';

const manifest = defineManifest({
  schema: 'svc.plugin/3',
  id: 'stock',
  version: '1.0.0',
  commands: [
    { id: 'count', handler: 'h.js#count' },
    { id: 'plain', handler: './h.js#plain' },
    { id: 'unlisted', handler: 'other.js#any' },
  ],
  jobs: [{ id: 'tidy', handler: 'h.js#tidy' }],
  webhooks: [{ event: 'moved', handler: 'h.js#plain', auth: { type: 'secret', header: 'x-s' } }],
  rest: {
    basePath: '/v1/plugins/stock',
    routes: [
      { method: 'GET', path: '/items/:id', handler: 'h.js#item', security: ['none'] },
      { method: 'GET', path: '/items/latest', handler: 'h.js#latest', security: ['none'] },
      { method: 'GET', path: '/items/:id/changes', handler: 'h.js#changes', security: ['none'] },
      { method: 'POST', path: '/items/:id', handler: 'h.js#plain', security: ['none'] },
    ],
  },
});

const Item = z.object({ id: z.string(), left: z.number().default(0) });
/** The module of the handlers, as its author types it; what runs is written beside it for the sandbox. */
const handlers = {
  count: defineCommand({
    input: z.object({ of: z.string() }),
    output: z.object({ counted: z.number() }),
    execute: (_ctx, { of }) => (of === '' ? fail('NONE', 'Nothing to count') : ok({ counted: of.length })),
  }),
  plain: async (_ctx: unknown, _input: unknown) => ({ at: new Date(0), seen: true }),
  tidy: () => ok({ removed: 2 }),
  item: defineRoute({ output: Item, execute: (ctx) => ({ id: ctx.params.id ?? '' }) }),
  latest: defineRoute(() => ({ latest: 'a1' })),
  changes: defineRoute({ execute: () => stream(['a', 'b'], { contentType: 'text/plain' }) }),
};
const modules = { './h.js': handlers };

const FILES = {
  'package.json': { name: 'stock', type: 'module' },
  'svc.plugin.json': { ...manifest, commands: manifest.commands.slice(0, 2) },
  'h.js': `
    import { stream } from 'svc-platform/sdk';
    export const count = (_ctx, { of }) => ({ counted: of.length });
    export const plain = () => ({ at: new Date(0), seen: true });
    export const tidy = () => ({ removed: 2 });
    export const item = (ctx) => ({ id: ctx.params.id, left: 0 });
    export const latest = () => ({ latest: 'a1' });
    export const changes = () => stream(['a', 'b'], { contentType: 'text/plain' });`,
};

async function typedHost() {
  const host = await createTestHost({
    plugin: await writeFiles(await tempDir(), FILES),
    types: { manifest, modules },
  });
  onTestFinished(() => host.close());
  return host;
}

test('results of commands, jobs and webhooks have the types of their handlers', async () => {
  const host = await typedHost();
  const counted = await host.command('count', { of: 'abc' });
  expectTypeOf(counted).toEqualTypeOf<CommandResult<{ counted: number }>>();
  expect(counted.result).toEqual({ counted: 3 });
  const plain = await host.command('plain');
  expectTypeOf(plain.result).toEqualTypeOf<{ at: string; seen: boolean } | undefined>();
  expect(plain.result).toEqual({ at: '1970-01-01T00:00:00.000Z', seen: true });
  const tidied = await host.job('tidy');
  expectTypeOf(tidied.result).toEqualTypeOf<{ removed: number } | undefined>();
  expect(tidied.result?.removed).toBe(2);
  const moved = await host.webhook('moved', {});
  expectTypeOf(moved.result).toEqualTypeOf<{ at: string; seen: boolean } | undefined>();
  expect(moved.result?.seen).toBe(true);
});

test('the body of a response has the type of the route that matches the path', async () => {
  const host = await typedHost();
  const item = await host.route('GET', '/items/a7');
  expectTypeOf(item.body).toEqualTypeOf<{ id: string; left: number }>();
  expect(item.body).toEqual({ id: 'a7', left: 0 });
  const id = String(item.body.id);
  expectTypeOf((await host.route('GET', `/items/${id}`)).body).toEqualTypeOf<{ id: string; left: number }>();
  const latest = await host.route('GET', '/items/latest');
  expectTypeOf(latest.body).toEqualTypeOf<{ latest: string }>();
  expect(latest.body.latest).toBe('a1');
  const changes = await host.route('GET', '/items/a7/changes');
  expectTypeOf(changes.body).toEqualTypeOf<string>();
  expect(changes.body).toBe('ab');
  const posted = await host.route('POST', '/items/a7', { body: {} });
  expectTypeOf(posted.body).toEqualTypeOf<{ at: string; seen: boolean }>();
  const absent = await host.route('GET', '/nothing');
  expectTypeOf(absent.body).toEqualTypeOf<unknown>();
  expect(absent.status).toBe(404);
});

test('a type argument overrides the declared type, and unknown names have an unknown type', async () => {
  const host = await typedHost();
  const failed = await host.route<{ error: { code: string } }>('GET', '/items');
  expectTypeOf(failed.body.error.code).toEqualTypeOf<string>();
  const other = await host.command<{ total: bigint }>('count', { of: '' });
  expectTypeOf(other.result).toEqualTypeOf<{ total: bigint } | undefined>();
  const name: string = 'count';
  expectTypeOf((await host.command(name, { of: '' })).result).toEqualTypeOf<unknown>();
  const unlisted = host.command('unlisted');
  expectTypeOf(unlisted).resolves.toEqualTypeOf<CommandResult<unknown>>();
  await expect(unlisted).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

test('without declared types, results have the type that the test states', async () => {
  const host = await createTestHost({ plugin: await writeFiles(await tempDir(), FILES) });
  onTestFinished(() => host.close());
  const counted = await host.command('count', { of: 'abc' });
  expectTypeOf(counted.result).toEqualTypeOf<unknown>();
  const said = await host.command<string>('count', { of: 'abc' });
  expectTypeOf(said.result).toEqualTypeOf<string | undefined>();
  expectTypeOf((await host.route<string>('GET', '/items/latest')).body).toEqualTypeOf<string>();
});
