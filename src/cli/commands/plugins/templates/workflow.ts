import { shortName, type Template, text } from './template.ts';

const cel = (expression: string): string => `\${{ ${expression} }}`;

/** A workflow of two steps, each a command of the plugin. */
export const workflowTemplate: Template = (id) => ({
  readme: `Makes reports in two durable steps: \`svc workflows run ${shortName(id)}-report\`.`,
  manifest: {
    permissions: { platform: { state: true, cache: false } },
    commands: [
      { id: 'collect', handler: 'steps.js#collect', description: 'Collect the figures of a day' },
      { id: 'write-report', handler: 'steps.js#writeReport', description: 'Write the report' },
    ],
    workflows: [
      {
        id: `${shortName(id)}-report`,
        name: 'Report',
        inputs: { type: 'object', properties: { day: { type: 'string' } }, required: ['day'] },
        jobs: {
          report: {
            steps: [
              { id: 'collect', uses: `${id}/collect`, with: { day: cel('inputs.day') }, idempotent: true },
              {
                id: 'write',
                uses: `${id}/write-report`,
                with: { day: cel('inputs.day'), figures: cel('steps.collect.output.figures') },
                idempotent: true,
              },
            ],
          },
        },
      },
    ],
  },
  files: {
    'steps.js': text(`
      import { defineCommand, ok, z } from 'svc-platform/sdk';

      export const collect = defineCommand({
        input: z.object({ day: z.iso.date() }),
        output: z.object({ figures: z.array(z.number()) }),
        execute: (_ctx, { day }) => ok({ figures: [day.length, Number(day.slice(-2))] }),
      });

      export const writeReport = defineCommand({
        input: z.object({ day: z.iso.date(), figures: z.array(z.number()) }),
        async execute(ctx, { day, figures }) {
          const report = { day, total: figures.reduce((sum, figure) => sum + figure, 0) };
          await ctx.state.set(\`report:\${day}\`, report);
          return ok(report);
        },
      });
    `),
    'test/steps.test.js': text(`
      import assert from 'node:assert/strict';
      import { after, test } from 'node:test';
      import { createTestHost } from 'svc-platform/testing';

      const host = await createTestHost();
      after(() => host.close());
      const asStep = { host: 'workflow' };

      test('the steps fit each other', async () => {
        const day = '2030-01-31';
        const { result } = await host.command('collect', { day }, asStep);
        const report = await host.command('write-report', { day, ...result }, asStep);
        assert.deepEqual(report.result, { day, total: 41 });
      });

      test('each step that the workflow uses is a command of this plugin', () => {
        const known = new Set(host.manifest.commands.map(({ id }) => \`\${host.manifest.id}/\${id}\`));
        for (const { steps } of Object.values(host.manifest.workflows[0].jobs)) {
          for (const { uses } of steps) assert.ok(known.has(uses), uses);
        }
      });

      test('a day that is none fails its step', async () => {
        await assert.rejects(host.command('collect', { day: 'soon' }, asStep), { code: 'VALIDATION_ERROR' });
      });
    `),
  },
});
