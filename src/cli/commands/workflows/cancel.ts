import { z } from 'zod';
import { cancelRun, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import type { Style } from '../../style.ts';
import { RunArg } from './arguments.ts';
import { coloured } from './views.ts';

export const cancel = defineCommand({
  name: 'workflows cancel',
  summary: 'Cancel a run and its children',
  example: 'svc workflows cancel run_01b8dac5',
  args: z.object({ run: RunArg }),
  run: async ({ run }, { client }) => ok(await client.call(cancelRun, { params: { runId: run } })),
  text: ({ cancelled, status }: ReplyOf<typeof cancelRun>, style) =>
    cancelled ? `The run is ${coloured(status, style)}.` : notCancelled(status, style),
});

function notCancelled(status: string, style: Style): string {
  if (status !== 'cancelling') return `The run had already ended: ${coloured(status, style)}.`;
  return 'The run had already timed out and is cleaning up.';
}
