import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { z } from 'zod';
import { type ReplyOf, sendSample } from '../../../contracts/index.ts';
import { messageOf } from '../../../kit/errors/errors.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { readJson } from '../../json-flag.ts';
import { UsageError } from '../../parse-args.ts';
import { parseHeader } from './header-args.ts';
import { targetArgs, targetBody } from './target-args.ts';

/** @spec docs/webhooks.md "Send" */
export const send = defineCommand({
  name: 'webhooks send',
  summary: "Send a signed sample delivery: the plugin's sample, or --data",
  example: "svc webhooks send github push --data @push.json --header 'x-github-event: push'",
  idField: 'webhookId',
  args: z.object({
    ...targetArgs,
    data: z.string().optional().describe('payload as JSON; "@<file>" reads a file, "-" reads stdin'),
    file: z.string().optional().describe('file with the body to send as it is, such as a form or XML'),
    contentType: z
      .string()
      .optional()
      .describe('content type of the body; default: the first one that the webhook accepts'),
    header: z.array(z.string()).default([]).describe("additional header, 'name: value'; may be repeated"),
  }),
  async run({ data, file, contentType, header, ...target }, { client, cwd }) {
    if (data !== undefined && file !== undefined) throw new UsageError('Use --data or --file, not both.');
    const body = {
      ...targetBody(target),
      ...(data === undefined ? {} : { data: await readJson('--data', data, cwd) }),
      ...(file === undefined ? {} : { bytes: (await readBytes(file, cwd)).toString('base64') }),
      ...(contentType === undefined ? {} : { contentType }),
      headers: Object.fromEntries(header.map(parseHeader)),
    };
    const reply = await client.call(sendSample, { body });
    // The exit code reflects the HTTP status that a sender would get, so that scripts can detect a refusal.
    return reply.status < 300 ? ok(reply) : { exitCode: 1, result: reply, error: refusalOf(reply) };
  },
  text: ({ status, webhookId, body }: ReplyOf<typeof sendSample>, style) =>
    `${status < 300 ? style.green(String(status)) : style.red(String(status))}  ${webhookId}\n${JSON.stringify(body, null, 2)}`,
});

async function readBytes(file: string, cwd: string): Promise<Buffer> {
  try {
    return await readFile(resolve(cwd, file));
  } catch (error) {
    throw new UsageError(`--file: ${messageOf(error)}`);
  }
}

function refusalOf({ status, body }: ReplyOf<typeof sendSample>): { code: string; message: string } {
  const { error } = (body ?? {}) as { error?: { code: string; message: string } };
  return {
    code: error?.code ?? 'EXECUTION_ERROR',
    message: `The sender would get ${status}${error ? `: ${error.message}` : '.'}`,
  };
}
