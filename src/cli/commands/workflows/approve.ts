import { z } from 'zod';
import { decideApproval } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { InputFlag } from '../../input-flag.ts';
import { readJson } from '../../json-flag.ts';
import { RunArg, StepArg } from './arguments.ts';

export const approve = defineCommand({
  name: 'workflows approve',
  summary: 'Approve or refuse a waiting step',
  example: `svc workflows approve run_01b8dac5 release.gate --data '{"region": "eu"}'`,
  args: z.object({
    run: RunArg,
    step: StepArg,
    refuse: z.boolean().default(false).describe('refuse instead of approving'),
    comment: z.string().max(4096).optional().describe('reason, stored with the run'),
    data: InputFlag.describe(
      'data for the form of the step, as JSON; "@<file>" reads a file, "-" reads stdin',
    ),
  }),
  async run({ run, step, refuse, comment, data }, { client, cwd }) {
    const body = {
      approved: !refuse,
      ...(comment === undefined ? {} : { comment }),
      ...(data === undefined ? {} : { data: await readJson('--data', data, cwd) }),
    };
    const reply = await client.call(decideApproval, { params: { runId: run, stepId: step }, body });
    return ok({ ...reply, approved: !refuse });
  },
  text: ({ approved }: { approved: boolean }) =>
    approved ? 'Approved. The run continues.' : 'Refused. The step fails.',
});
