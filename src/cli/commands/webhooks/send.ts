import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text as textOfStream } from 'node:stream/consumers';
import { z } from 'zod';
import { type ReplyOf, sendSample } from '../../../contracts/index.ts';
import { messageOf } from '../../../kit/errors.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';
import { parseHeader } from './header-args.ts';
import { targetArgs, targetBody } from './target-args.ts';

/** @spec docs/webhooks.md "Send" */
export const send = defineCommand({
  name: 'webhooks send',
  summary: "Deliver a sample, signed by the gateway: the plugin's own, or --data",
  example: "svc webhooks send github push --data @push.json --header 'x-github-event: push'",
  args: z.object({
    ...targetArgs,
    data: z.string().optional().describe('the payload as JSON, @file, or @- for stdin'),
    header: z.array(z.string()).default([]).describe("a further header, 'name: value'; may be repeated"),
  }),
  async run({ data, header, ...target }, { client, cwd }) {
    const body = {
      ...targetBody(target),
      ...(data === undefined ? {} : { data: await payloadOf(data, cwd) }),
      headers: Object.fromEntries(header.map(parseHeader)),
    };
    const reply = await client.call(sendSample, { body });
    // What the sender would be answered decides, so that a script sees a refusal.
    return reply.status < 300 ? ok(reply) : { exitCode: 1, result: reply, error: refusalOf(reply) };
  },
  text: ({ status, webhookId, body }: ReplyOf<typeof sendSample>, style) =>
    `${status < 300 ? style.green(String(status)) : style.red(String(status))}  ${webhookId}\n${JSON.stringify(body, null, 2)}`,
});

function refusalOf({ status, body }: ReplyOf<typeof sendSample>): { code: string; message: string } {
  const { error } = (body ?? {}) as { error?: { code: string; message: string } };
  return {
    code: error?.code ?? 'EXECUTION_ERROR',
    message: `The sender would be answered ${status}${error ? `: ${error.message}` : '.'}`,
  };
}

async function payloadOf(data: string, cwd: string): Promise<unknown> {
  try {
    if (data === '@-') return JSON.parse(await textOfStream(process.stdin));
    return JSON.parse(data.startsWith('@') ? await readFile(resolve(cwd, data.slice(1)), 'utf8') : data);
  } catch (error) {
    throw new UsageError(`--data cannot be read as JSON: ${messageOf(error)}.`);
  }
}
