import { z } from 'zod';
import { sendSignal } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { InputFlag, readInput } from '../../input-flag.ts';
import { RunArg } from './arguments.ts';

export const signal = defineCommand({
  name: 'workflows signal',
  summary: 'Send a signal to a run',
  example: `svc workflows signal run_01b8dac5 paid --input '{"amount": 12}'`,
  args: z.object({
    run: RunArg,
    name: z.string().min(1).max(256).describe('signal name'),
    input: InputFlag,
    key: z.string().optional().describe('idempotency key: a repeated key has no second effect'),
  }),
  async run({ run, name, input, key }, { client, cwd }) {
    const payload = input === undefined ? null : await readInput(input, cwd);
    const body = { payload, ...(key === undefined ? {} : { idempotencyKey: key }) };
    return ok(await client.call(sendSignal, { params: { runId: run, name }, body }));
  },
  text: () => 'Sent. The signal is stored until a step waits for it.',
});
