import { z } from 'zod';
import {
  type CallInput,
  cancelRun,
  decideApproval,
  decideStep,
  decideSteps,
  type ReplyOf,
  rerunRun,
  sendSignal,
} from '../../../contracts/index.ts';
import type { CommandContext } from '../../context.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { readJson } from '../../json-flag.ts';
import { UsageError } from '../../parse-args.ts';
import type { Style } from '../../style.ts';
import { InputFlag, readInput } from './input.ts';
import { RunArg } from './read.ts';
import { coloured, runPairs } from './views.ts';

const StepArg = z.string().min(1).max(256).describe('step: <job>.<step>');

export const cancel = defineCommand({
  name: 'workflows cancel',
  summary: 'Cancel a run and its children',
  example: 'svc workflows cancel run_01b8dac5',
  args: z.object({ run: RunArg }),
  run: async ({ run }, { client }) => ok(await client.call(cancelRun, { params: { runId: run as never } })),
  text: ({ cancelled, status }: ReplyOf<typeof cancelRun>, style) =>
    cancelled ? `The run is ${coloured(status, style)}.` : notCancelled(status, style),
});

function notCancelled(status: string, style: Style): string {
  if (status !== 'cancelling') return `The run had already ended: ${coloured(status, style)}.`;
  return 'The run had already timed out and is cleaning up.';
}

export const rerun = defineCommand({
  name: 'workflows rerun',
  summary: 'Run again from the start or from a step',
  example: 'svc workflows rerun run_01b8dac5 --from build.test',
  args: z.object({ run: RunArg, from: StepArg.optional().describe('step to start from: <job>.<step>') }),
  async run({ run, from }, { client }) {
    const body = from === undefined ? {} : { fromStep: from };
    return ok((await client.call(rerunRun, { params: { runId: run as never }, body })).run);
  },
  text: (run: ReplyOf<typeof rerunRun>['run'], style) => runPairs(run, style),
});

export const approve = defineCommand({
  name: 'workflows approve',
  summary: 'Approve a waiting step, or refuse it with --refuse',
  example: 'svc workflows approve run_01b8dac5 release.gate --comment "looks good"',
  args: z.object({
    run: RunArg,
    step: StepArg,
    refuse: z.boolean().default(false).describe('refuse instead of approving'),
    comment: z.string().max(4096).optional().describe('reason, stored with the run'),
  }),
  async run({ run, step, refuse, comment }, { client }) {
    const body = { approved: !refuse, ...(comment === undefined ? {} : { comment }) };
    const reply = await client.call(decideApproval, { params: { runId: run as never, stepId: step }, body });
    return ok({ ...reply, approved: !refuse });
  },
  text: ({ approved }: { approved: boolean }) =>
    approved ? 'Approved. The run continues.' : 'Refused. The step fails.',
});

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
    const value = output === undefined ? null : ((await readJson('--output', output, cwd)) as never);
    const body = { action, output: value };
    if (run === 'all') {
      const stepId = step === 'all' ? undefined : step;
      return ok<DecideReply>(await decideAll(client, { ...body, workflowId: workflow, stepId }));
    }
    const decided: DecideReply['decided'] = [];
    for (const runId of new Set(run.split(','))) {
      await client.call(decideStep, { params: { runId: runId as never, stepId: step }, body });
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

/** Pages through all waiting steps. The service applies each page immediately. */
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

export const signal = defineCommand({
  name: 'workflows signal',
  summary: 'Send a signal to a run',
  example: `svc workflows signal run_01b8dac5 paid --input '{"amount": 12}'`,
  args: z.object({
    run: RunArg,
    name: z.string().min(1).max(256).describe('signal name'),
    input: InputFlag,
    key: z.string().optional().describe('idempotency key: a repeated key sends no second signal'),
  }),
  async run({ run, name, input, key }, { client, cwd }) {
    const payload = input === undefined ? null : await readInput(input, cwd);
    const body = { payload, ...(key === undefined ? {} : { idempotencyKey: key }) };
    return ok(await client.call(sendSignal, { params: { runId: run as never, name }, body }));
  },
  text: () => 'Sent. The signal is stored until a step waits for it.',
});
