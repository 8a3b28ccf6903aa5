import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { z } from 'zod';
import { type ReplyOf, sendSample, WebhookFixture } from '../../../contracts/index.ts';
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
    fixture: z.string().optional().describe('file that `svc webhooks fixture` saved: its body and headers'),
    file: z.string().optional().describe('file with the body to send as it is, such as a form or XML'),
    contentType: z
      .string()
      .optional()
      .describe('content type of the body; default: the first one that the webhook accepts'),
    header: z.array(z.string()).default([]).describe("additional header, 'name: value'; may be repeated"),
  }),
  async run({ data, file, fixture: fixtureFile, contentType, header, ...target }, { client, cwd }) {
    if ([data, file, fixtureFile].filter((given) => given !== undefined).length > 1)
      throw new UsageError('Use only one of --data, --file and --fixture.');
    const fixture = fixtureFile === undefined ? undefined : await readFixture(fixtureFile, cwd);
    const body = {
      ...targetBody(target),
      ...(fixture ? contentOf(fixture) : {}),
      ...(data === undefined ? {} : { data: await readJson('--data', data, cwd) }),
      ...(file === undefined ? {} : { bytes: (await readBytes('--file', file, cwd)).toString('base64') }),
      ...(contentType === undefined ? {} : { contentType }),
      headers: { ...eventHeadersOf(fixture), ...Object.fromEntries(header.map(parseHeader)) },
    };
    const reply = await client.call(sendSample, { body });
    // The exit code reflects the HTTP status that a sender would get, so that scripts can detect a refusal.
    return reply.status < 300 ? ok(reply) : { exitCode: 1, result: reply, error: refusalOf(reply) };
  },
  text: ({ status, webhookId, body }: ReplyOf<typeof sendSample>, style) =>
    `${status < 300 ? style.green(String(status)) : style.red(String(status))}  ${webhookId}\n${JSON.stringify(body, null, 2)}`,
});

async function readFixture(file: string, cwd: string): Promise<WebhookFixture> {
  const text = (await readBytes('--fixture', file, cwd)).toString();
  try {
    return WebhookFixture.parse(JSON.parse(text));
  } catch (error) {
    throw new UsageError(`--fixture: ${file} was not saved by \`svc webhooks fixture\`: ${messageOf(error)}`);
  }
}

function contentOf({ body, bodyEncoding, headers }: WebhookFixture) {
  const contentType = headers['content-type'];
  return {
    bytes: Buffer.from(body, bodyEncoding).toString('base64'),
    ...(contentType === undefined ? {} : { contentType }),
  };
}

function eventHeadersOf(fixture: WebhookFixture | undefined): Record<string, string> {
  const { 'content-type': _contentType, ...headers } = fixture?.headers ?? {};
  return headers;
}

async function readBytes(flag: string, file: string, cwd: string): Promise<Buffer> {
  try {
    return await readFile(resolve(cwd, file));
  } catch (error) {
    throw new UsageError(`${flag}: ${messageOf(error)}`);
  }
}

function refusalOf({ status, body }: ReplyOf<typeof sendSample>): { code: string; message: string } {
  const { error } = (body ?? {}) as { error?: { code: string; message: string } };
  return {
    code: error?.code ?? 'EXECUTION_ERROR',
    message: `The sender would get ${status}${error ? `: ${error.message}` : '.'}`,
  };
}
