import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { startRun, type WorkflowRun } from '../../../contracts/index.ts';
import type { CommandContext } from '../../context.ts';
import { defineCommand, ok, streamed } from '../../define-command.ts';
import { InputFlag, readInput } from './arguments.ts';
import { followRun } from './follow.ts';
import { runPairs } from './views.ts';

/** Defines `svc workflows run`. @spec docs/workflows.md "Write and run a workflow" */
export const run = defineCommand({
  name: 'workflows run',
  summary: 'Start a run of a registered workflow or a definition file',
  example: 'svc workflows run nightly --follow',
  streams: 'with --follow',
  args: z.object({
    workflow: z.string().min(1).describe('workflow id, or a .yaml or .json file'),
    input: InputFlag,
    key: z.string().optional().describe('idempotency key: a repeated key has no second effect'),
    priority: z.coerce
      .number()
      .int()
      .min(-100)
      .max(100)
      .default(0)
      .describe('-100 to 100; higher goes first'),
    at: z.iso.datetime({ offset: true }).optional().describe('earliest start (ISO 8601)'),
    follow: z.boolean().default(false).describe('follow until the run ends'),
  }),
  short: { follow: 'f' },
  async run({ workflow, input, key, priority, at, follow }, context) {
    const { source, placed } = await resolveRunSource(workflow, context);
    const body = {
      ...source,
      input: await readInput(input, context.cwd),
      priority,
      ...(key === undefined ? {} : { idempotencyKey: key }),
      ...(at === undefined ? {} : { runAt: Date.parse(at) }),
    };
    const { run: started } = await context.client.call(startRun, { body }).catch((error) => {
      throw placed(error);
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
  placed(error: unknown): unknown;
}

async function resolveRunSource(workflow: string, { cwd }: CommandContext): Promise<RunSource> {
  const file = resolve(cwd, workflow);
  if (!/\.(?:ya?ml|json)$/.test(workflow) || !existsSync(file))
    return { source: { workflowId: workflow }, placed: (error) => error };
  const { readDefinitionFile } = await import('../../definition-file.ts');
  const { definition, placed } = await readDefinitionFile(file, workflow);
  return { source: { definition }, placed };
}
