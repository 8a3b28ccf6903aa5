import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { EventName, InstanceId, PluginId, provisionWebhook, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';
import { pairs } from '../../style.ts';

/** One line end is the shell's, not the secret's. Throws UsageError for a terminal or nothing. */
async function readSecret(): Promise<string> {
  if (process.stdin.isTTY)
    throw new UsageError('--secret-stdin reads the secret from a pipe.', {
      hint: 'pbpaste | svc webhooks provision <plugin> <event> --secret-stdin',
    });
  const secret = (await text(process.stdin)).replace(/\r?\n$/, '');
  if (secret === '') throw new UsageError('--secret-stdin: stdin was empty.');
  return secret;
}

/** @spec Webhook admin API */
export const provision = defineCommand({
  name: 'webhooks provision',
  summary: 'Create or rotate the secret of a declared webhook',
  example: 'svc webhooks provision github push',
  args: z.object({
    plugin: PluginId.describe("the plugin's id"),
    event: EventName.describe('the event it declares'),
    instance: InstanceId.optional().describe("which instance of a 'multi' webhook"),
    namespaceInUrl: z
      .boolean()
      .default(false)
      .describe('put the namespace into the URL, for senders that cannot set headers'),
    secretStdin: z
      .boolean()
      .default(false)
      .describe('read the secret from stdin: the one that Stripe, Slack or Shopify shows you'),
  }),
  async run({ plugin, event, instance, namespaceInUrl, secretStdin }, { client, ui }) {
    const secret = secretStdin ? await readSecret() : undefined;
    const reply = await client.call(provisionWebhook, {
      body: {
        pluginId: plugin,
        event,
        ...(instance === undefined ? {} : { instanceId: instance }),
        ...(namespaceInUrl ? { namespaceInUrl } : {}),
        ...(secret === undefined ? {} : { secret }),
      },
    });
    if (secret === undefined) ui.warn('Copy the secret now; it is shown once.');
    if (reply.rotated) ui.note('The former secret works for 24 more hours.');
    return ok(reply);
  },
  text: ({ url, secret, rotated }: ReplyOf<typeof provisionWebhook>, style) =>
    pairs(
      [
        ['url', url],
        ['secret', secret === '' ? '(as given)' : secret],
        ['rotated', rotated ? 'yes' : 'no'],
      ],
      style,
    ),
});
