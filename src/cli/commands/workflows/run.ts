import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { startRun, type WorkflowRun } from '../../../contracts/index.ts';
import type { CommandContext } from '../../context.ts';
import { defineCommand, ok, streamed } from '../../define-command.ts';
import { labelsOf } from '../../label-flag.ts';
import { startFields, startFlags } from '../../start-flags.ts';
import { followRun } from './follow-run.ts';
import { runPairs } from './views.ts';

/** @spec docs/workflows.md "Write and run a workflow" */
export const run = defineCommand({
  name: 'workflows run',
  summary: 'Start a run of a registered workflow or a definition file',
  example: 'svc workflows run nightly --follow',
  streams: 'with --follow',
  args: z.object({
    workflow: z.string().min(1).describe('workflow id, or a .yaml or .json file'),
    ...startFlags,
    label: z
      .array(z.string())
      .default([])
      .describe('k=v, repeatable; `svc workflows runs --label k=v` lists its runs'),
    follow: z.boolean().default(false).describe('follow until the run ends'),
  }),
  short: { follow: 'f' },
  async run({ workflow, follow, label, ...start }, context) {
    const { source, withPositions } = await resolveRunSource(workflow, context);
    const labels = label.length === 0 ? {} : { labels: labelsOf(label) };
    const body = { ...source, ...labels, ...(await startFields(start, context.cwd)) };
    const { run: started } = await context.client.call(startRun, { body }).catch((error) => {
      throw withPositions(error);
    });
    if (!follow) {
      context.ui.note(`Show the run with: svc workflows show ${started.id}`);
      return ok(started);
    }
    context.ui.note(`run ${started.id}`);
    const { run: end, exitCode } = await followRun(context, started.id);
    if (!context.globals.json && end.error)
      context.ui.warnOf(end.error, ({ code, message }) => `${code} ${message}`);
    if (!context.globals.json && end.output !== null) context.ui.line(JSON.stringify(end.output));
    return streamed(exitCode);
  },
  text: (started: WorkflowRun, style) => runPairs(started, style),
});

interface RunSource {
  source: { workflowId: string } | { definition: Record<string, unknown> };
  withPositions(error: unknown): unknown;
}

async function resolveRunSource(workflow: string, { cwd }: CommandContext): Promise<RunSource> {
  const file = resolve(cwd, workflow);
  if (!/\.(?:ya?ml|json)$/.test(workflow) || !existsSync(file))
    return { source: { workflowId: workflow }, withPositions: (error) => error };
  const { readDefinitionFile } = await import('../../definition-file.ts');
  const { definition, withPositions } = await readDefinitionFile(file, workflow);
  return { source: { definition }, withPositions };
}
