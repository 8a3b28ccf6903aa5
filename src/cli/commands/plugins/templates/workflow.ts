import { shortName, type Template, text } from './template.ts';

/** Template of a plugin with a workflow in code. The workflow has three steps, and one of the steps waits. */
export const workflowTemplate: Template = (id) => ({
  readme: `Creates reports in durable steps: \`svc workflows run ${shortName(id)}-report --input '{"day": "2030-01-31"}' --follow\`.`,
  manifest: {
    permissions: { platform: { state: true, cache: false } },
    workflows: [{ id: `${shortName(id)}-report`, name: 'Report', handler: 'report.js#report' }],
  },
  files: {
    'report.js': text(`
      import { defineWorkflow, z } from 'svc-platform/sdk';

      /** Replayed from its first line whenever the run resumes; finished steps return their stored results. */
      export const report = defineWorkflow({
        id: '${shortName(id)}-report',
        input: z.object({ day: z.iso.date() }),
        steps: { idempotent: true, retry: { maxAttempts: 3 } },
        async run(ctx, { day }) {
          const figures = await ctx.step('collect', () => [day.length, Number(day.slice(-2))]);
          await ctx.sleep('settle', 60_000);
          const total = figures.reduce((sum, figure) => sum + figure, 0);
          await ctx.step('write', () => ctx.state.set(\`report:\${day}\`, { day, total }));
          return { day, total };
        },
      });
    `),
    'test/report.test.js': text(`
      import assert from 'node:assert/strict';
      import { after, test } from 'node:test';
      import { createTestHost } from 'svc-platform/testing';

      const host = await createTestHost();
      after(() => host.close());
      const name = host.manifest.workflows[0].id;

      test('a report is written after a minute, and each step runs once', async () => {
        const { id } = await host.workflow(name, { day: '2030-01-31' });
        assert.equal((await host.settled(id)).status, 'waiting');
        host.advance(60_000);
        const run = await host.settled(id);
        assert.deepEqual([run.status, run.output], ['succeeded', { day: '2030-01-31', total: 41 }]);
      });

      test('an invalid day is rejected', async () => {
        await assert.rejects(host.workflow(name, { day: 'soon' }), { code: 'VALIDATION_ERROR' });
      });
    `),
  },
});
