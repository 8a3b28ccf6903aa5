import { shortName, type Template, text } from './template.ts';

const FILES = {
  'routes.js': text(`
    import { defineRoute, fail, ok, z } from 'svc-platform/sdk';

    const Note = z.object({ text: z.string().min(1).max(10_000) });
    const key = (name) => \`note:\${name}\`;

    export const listNotes = defineRoute({
      method: 'GET',
      input: z.object({ limit: z.coerce.number().int().min(1).max(100).default(20) }),
      async execute(ctx, { limit }) {
        const { items } = await ctx.state.list({ prefix: 'note:', limit });
        return ok({ notes: items.map((item) => item.key.slice('note:'.length)) });
      },
    });

    export const putNote = defineRoute({
      method: 'PUT',
      input: Note,
      output: Note.extend({ name: z.string() }),
      async execute(ctx, note) {
        await ctx.state.set(key(ctx.params.name), note);
        return ok({ name: ctx.params.name, ...note });
      },
    });

    export const getNote = defineRoute({
      method: 'GET',
      async execute(ctx) {
        const note = await ctx.state.get(key(ctx.params.name));
        return note ? ok(note) : fail('NO_SUCH_NOTE', \`Note "\${ctx.params.name}" does not exist.\`);
      },
    });
  `),
  'test/routes.test.js': text(`
    import assert from 'node:assert/strict';
    import { after, test } from 'node:test';
    import { createTestHost } from 'svc-platform/testing';

    const host = await createTestHost();
    after(() => host.close());

    test('a note is written, read and listed', async () => {
      const put = await host.route('PUT', '/notes/milk', { body: { text: 'two bottles' } });
      assert.deepEqual([put.status, put.body], [200, { name: 'milk', text: 'two bottles' }]);
      assert.deepEqual((await host.route('GET', '/notes/milk')).body, { text: 'two bottles' });
      const list = await host.route('GET', '/notes', { query: { limit: 5 } });
      assert.deepEqual(list.body, { notes: ['milk'] });
    });

    test('a missing note answers the declared 404', async () => {
      const { status, body } = await host.route('GET', '/notes/none');
      assert.deepEqual([status, body.error.code], [404, 'NO_SUCH_NOTE']);
    });

    test('an invalid body answers 400 without running the handler', async () => {
      const { status, body } = await host.route('PUT', '/notes/empty', { body: { text: '' } });
      assert.deepEqual([status, body.error.code], [400, 'VALIDATION_ERROR']);
      assert.equal((await host.route('GET', '/notes/empty')).status, 404);
    });
  `),
};

/** Template of a plugin with typed REST routes that store notes. */
export const restTemplate: Template = (id) => ({
  readme: `Stores notes: \`/api/v1/plugins/${shortName(id)}/notes\`.`,
  manifest: {
    permissions: { platform: { state: true, cache: false } },
    rest: {
      basePath: `/v1/plugins/${shortName(id)}`,
      routes: [
        { method: 'GET', path: '/notes', handler: 'routes.js#listNotes', description: 'List the notes' },
        { method: 'PUT', path: '/notes/:name', handler: 'routes.js#putNote', description: 'Write a note' },
        {
          method: 'GET',
          path: '/notes/:name',
          handler: 'routes.js#getNote',
          description: 'Read a note',
          errors: [{ code: 'NO_SUCH_NOTE', http: 404, description: 'The note does not exist' }],
        },
      ],
    },
  },
  files: FILES,
});
