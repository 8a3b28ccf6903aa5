import { z } from 'zod';
import { EventType, type MessageAttempt, testEndpoint } from '../../../contracts/index.ts';
import { formatDuration } from '../../../kit/time/duration.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { readJson } from '../../json-flag.ts';
import { pairs } from '../../table.ts';
import { endpointArg } from './endpoint-args.ts';

/** @spec docs/messages.md */
export const test = defineCommand({
  name: 'endpoints test',
  summary: 'Send a test message to an endpoint now, and show the answer',
  example: 'svc endpoints test ep_01k8x2v7w9m4q5r6s7t8a9b0cd',
  args: z.object({
    id: endpointArg,
    type: EventType.optional().describe('event type; default: webhook.test'),
    data: z.string().optional().describe('data as JSON; "@<file>" reads a file, "-" reads stdin'),
  }),
  async run({ id, type, data }, { client, cwd }) {
    const body = {
      ...(type === undefined ? {} : { type }),
      ...(data === undefined ? {} : { data: await readJson('--data', data, cwd) }),
    };
    const attempt = await client.call(testEndpoint, { params: { id }, body });
    // The exit code tells scripts whether the endpoint accepts messages.
    return attempt.outcome === 'succeeded'
      ? ok(attempt)
      : { exitCode: 1, result: attempt, error: failure(attempt) };
  },
  text: ({ outcome, responseStatus, durationMs, responseExcerpt }: MessageAttempt, style) =>
    pairs(
      [
        [
          'answer',
          outcome === 'succeeded' ? style.green(String(responseStatus)) : String(responseStatus ?? 'none'),
        ],
        ['time', formatDuration(durationMs)],
        ...(responseExcerpt ? [['body', responseExcerpt] as [string, string]] : []),
      ],
      style,
    ),
});

function failure({ error, responseStatus }: MessageAttempt): { code: string; message: string } {
  return { code: 'EXECUTION_ERROR', message: error ?? `The endpoint answered ${responseStatus}.` };
}
