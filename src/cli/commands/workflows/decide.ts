import { z } from 'zod';
import { type CallInput, decideStep, decideSteps, type ReplyOf } from '../../../contracts/index.ts';
import type { CommandContext } from '../../context.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { InputFlag } from '../../input-flag.ts';
import { readJson } from '../../json-flag.ts';
import { UsageError } from '../../parse-args.ts';
import { RunArg, StepArg } from './arguments.ts';

const Decision = z.enum(['retry', 'succeed', 'fail']);
type DecideReply = Pick<ReplyOf<typeof decideSteps>, 'decided' | 'refused'>;

export const decide = defineCommand({
  name: 'workflows decide',
  summary: 'Retry, complete or fail interrupted steps',
  example: 'svc workflows decide run_01b8dac5 pay.charge retry',
  args: z.object({
    run: RunArg.describe('run id, several separated by commas, or "all" waiting runs'),
    step: StepArg.describe('step: <job>.<step>, or "all" (requires run "all")'),
    action: Decision.describe('retry, succeed or fail'),
    output: InputFlag.describe('with succeed: output of the steps, as JSON'),
    workflow: z.string().max(256).optional().describe('with "all": only runs of this workflow'),
  }),
  async run({ run, step, action, output, workflow }, { client, cwd }) {
    if (run !== 'all' && (step === 'all' || workflow !== undefined))
      throw new UsageError('The step "all" and --workflow require the run "all".', {
        hint: 'svc workflows decide all all retry --workflow billing',
      });
    const value = output === undefined ? null : await readJson('--output', output, cwd);
    const body = { action, output: value };
    if (run === 'all') {
      const stepId = step === 'all' ? undefined : step;
      return ok<DecideReply>(await decideAll(client, { ...body, workflowId: workflow, stepId }));
    }
    const decided: DecideReply['decided'] = [];
    for (const runId of new Set(run.split(','))) {
      await client.call(decideStep, { params: { runId, stepId: step }, body });
      decided.push({ runId, stepId: step });
    }
    return ok<DecideReply>({ decided, refused: [] });
  },
  text({ decided, refused }: DecideReply, style) {
    const lines = refused.map(
      ({ runId, stepId, error }) => `${style.red('refused')} ${runId} ${stepId}: ${error.message}`,
    );
    if (decided.length === 0 && lines.length === 0) return 'No matching run waits for a decision.';
    const runs = new Set(decided.map(({ runId }) => runId)).size;
    return [`Decided ${decided.length} steps of ${runs} runs.`, ...lines].join('\n');
  },
});

/**
 * Applies a decision (retry, succeed or fail) to all matching steps, one page per request. Earlier pages keep their
 * decisions if a later request fails.
 */
async function decideAll(
  client: Pick<CommandContext['client'], 'call'>,
  body: CallInput<typeof decideSteps>['body'],
): Promise<DecideReply> {
  const all: DecideReply = { decided: [], refused: [] };
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page: ReplyOf<typeof decideSteps> = await client.call(decideSteps, {
      body: { ...body, limit: 200, ...(cursor === undefined ? {} : { cursor }) },
    });
    all.decided.push(...page.decided);
    all.refused.push(...page.refused);
    cursor = page.nextCursor;
  }
  return all;
}
