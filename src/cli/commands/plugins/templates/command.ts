import { shortName, type Template, text } from './template.ts';

/** Template of a plugin with a command, which the CLI and workflows can call. */
export const commandTemplate: Template = (id) => ({
  readme: `Greets a person: \`svc run ${id} ${shortName(id)}-greet --name Ada\`.`,
  manifest: {
    commands: [{ id: `${shortName(id)}-greet`, handler: 'commands.js#greet', description: 'Greet somebody' }],
  },
  files: {
    'commands.js': text(`
      import { defineCommand, fail, ok, z } from 'svc-platform/sdk';

      export const greet = defineCommand({
        input: z.object({
          name: z.string().min(1).describe('person to greet'),
          times: z.number().int().min(1).max(10).default(1),
        }),
        output: z.object({ greeting: z.string(), greetedBefore: z.number() }),
        async execute(ctx, { name, times }) {
          if (name === 'nobody') return fail('NOBODY', 'There is nobody to greet.');
          const count = await ctx.state.increment(\`greeted:\${name}\`);
          ctx.log.info('greeted', { name, count });
          return ok({ greeting: Array(times).fill(\`Hello \${name}\`).join(', '), greetedBefore: count - 1 });
        },
      });
    `),
    'test/commands.test.js': text(`
      import assert from 'node:assert/strict';
      import { after, test } from 'node:test';
      import { createTestHost } from 'svc-platform/testing';

      const host = await createTestHost();
      after(() => host.close());
      const greet = (input, options) => host.command(host.manifest.commands[0].id, input, options);

      test('it greets and counts greetings per name', async () => {
        const first = await greet({ name: 'Ada', times: 2 });
        assert.deepEqual(first.result, { greeting: 'Hello Ada, Hello Ada', greetedBefore: 0 });
        const second = await greet({ name: 'Ada' });
        assert.equal(second.result.greetedBefore, 1);
      });

      test('each tenant has its own state', async () => {
        const other = await greet({ name: 'Ada' }, { tenantId: 'acme' });
        assert.equal(other.result.greetedBefore, 0);
      });

      test('nobody is not greeted', async () => {
        const { exitCode, error } = await greet({ name: 'nobody' });
        assert.deepEqual([exitCode, error.code], [1, 'NOBODY']);
      });

      test('input is checked before the handler runs', async () => {
        await assert.rejects(greet({ name: '' }), { code: 'VALIDATION_ERROR' });
      });
    `),
  },
});
