import { z } from 'zod';
import { decideApproval } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { RunArg, StepArg } from './arguments.ts';

export const approve = defineCommand({
  name: 'workflows approve',
  summary: 'Approve or refuse a waiting step',
  example: 'svc workflows approve run_01b8dac5 release.gate --comment "looks good"',
  args: z.object({
    run: RunArg,
    step: StepArg,
    refuse: z.boolean().default(false).describe('refuse instead of approving'),
    comment: z.string().max(4096).optional().describe('reason, stored with the run'),
  }),
  async run({ run, step, refuse, comment }, { client }) {
    const body = { approved: !refuse, ...(comment === undefined ? {} : { comment }) };
    const reply = await client.call(decideApproval, { params: { runId: run, stepId: step }, body });
    return ok({ ...reply, approved: !refuse });
  },
  text: ({ approved }: { approved: boolean }) =>
    approved ? 'Approved. The run continues.' : 'Refused. The step fails.',
});
