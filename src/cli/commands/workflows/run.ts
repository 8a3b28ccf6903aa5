import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { startRun, type WorkflowRun } from '../../../contracts/index.ts';
import type { CommandContext } from '../../context.ts';
import { defineCommand, ok, streamed } from '../../define-command.ts';
import { followRun } from './follow.ts';
import { InputFlag, readInput } from './input.ts';
import { runPairs } from './views.ts';

/** @spec docs/workflows.md "Write and run a workflow" */
export const run = defineCommand({
  name: 'workflows run',
  summary: 'Start a run of a registered workflow, or of a definition in a file',
  example: 'svc workflows run nightly --follow',
  streams: 'with --follow',
  args: z.object({
    workflow: z.string().min(1).describe('its id, or a .yaml or .json file'),
    input: InputFlag,
    key: z.string().optional().describe('an idempotency key: the same one starts one run'),
    priority: z.coerce
      .number()
      .int()
      .min(-100)
      .max(100)
      .default(0)
      .describe('-100 to 100; higher goes first'),
    at: z.iso.datetime({ offset: true }).optional().describe('not before this time (ISO 8601)'),
    follow: z.boolean().default(false).describe('show progress until the run is over'),
  }),
  short: { follow: 'f' },
  async run({ workflow, input, key, priority, at, follow }, context) {
    const { what, placed } = await whatToRun(workflow, context);
    const body = {
      ...what,
      input: await readInput(input, context.cwd),
      priority,
      ...(key === undefined ? {} : { idempotencyKey: key }),
      ...(at === undefined ? {} : { runAt: Date.parse(at) }),
    };
    const { run: started } = await context.client.call(startRun, { body } as never).catch((error) => {
      throw placed(error);
    });
    if (!follow) {
      context.ui.note(`See how it goes: svc workflows show ${started.id}`);
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

interface Wanted {
  what: { workflowId: string } | { definition: unknown };
  placed(error: unknown): unknown;
}

async function whatToRun(workflow: string, { cwd }: CommandContext): Promise<Wanted> {
  const file = resolve(cwd, workflow);
  if (!/\.(?:ya?ml|json)$/.test(workflow) || !existsSync(file))
    return { what: { workflowId: workflow }, placed: (error) => error };
  const { readDefinitionFile } = await import('../../definition-file.ts');
  const { definition, placed } = await readDefinitionFile(file, workflow);
  return { what: { definition }, placed };
}
