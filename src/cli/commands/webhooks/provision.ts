import { text } from 'node:stream/consumers';
import { z } from 'zod';
import {
  EventName,
  InstanceId,
  listWebhooks,
  PluginId,
  provisionWebhook,
  type ReplyOf,
  SECRET_MAKERS,
} from '../../../contracts/index.ts';
import type { Client } from '../../../http/index.ts';
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

/** Who makes this webhook's secret; undefined when we do. Only advice hangs on it, so a failure is none. */
async function makerOfSecret(client: Client, plugin: string, event: string): Promise<string | undefined> {
  const items = await client.call(listWebhooks, {}).then(
    (list) => list.items,
    () => [],
  );
  const declared = items.find((item) => item.pluginId === plugin && item.event === event);
  return SECRET_MAKERS[declared?.provider ?? ''];
}

function wrongMaker(
  maker: string,
  { plugin, event, instance }: { plugin: string; event: string; instance: string | undefined },
): string {
  const words = [plugin, event, ...(instance === undefined ? [] : ['--instance', instance])].join(' ');
  return `${maker} signs with a secret of its own making and takes no other. Give us that one: pbpaste | svc webhooks provision ${words} --secret-stdin`;
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
      .describe('put the namespace into the URL, for senders that cannot set headers; stays so when rotated'),
    secretStdin: z
      .boolean()
      .default(false)
      .describe('read the secret from stdin: the one that Stripe, Slack or Shopify shows you'),
    generate: z
      .boolean()
      .default(false)
      .describe('make a secret in place of the one that Stripe, Slack or Shopify made'),
  }),
  async run({ plugin, event, instance, namespaceInUrl, secretStdin, generate }, { client, ui }) {
    if (secretStdin && generate) throw new UsageError('Give --secret-stdin or --generate, not both.');
    const secret = secretStdin ? await readSecret() : undefined;
    const reply = await client.call(provisionWebhook, {
      body: {
        pluginId: plugin,
        event,
        ...(instance === undefined ? {} : { instanceId: instance }),
        ...(namespaceInUrl ? { namespaceInUrl } : {}),
        ...(secret === undefined ? {} : { secret }),
        ...(generate ? { generate } : {}),
      },
    });
    if (secret === undefined) {
      ui.warn('Copy the secret now; it is shown once.');
      const maker = await makerOfSecret(client, plugin, event);
      if (maker) ui.warn(wrongMaker(maker, { plugin, event, instance }));
    }
    if (reply.rotated) ui.note('The former secret works for 24 more hours.');
    return ok(reply);
  },
  text: ({ url, secret, rotated, requestsPerMinute }: ReplyOf<typeof provisionWebhook>, style) =>
    pairs(
      [
        ['url', url],
        ['secret', secret === '' ? '(as given)' : secret],
        ['rotated', rotated ? 'yes' : 'no'],
        ['limit', `${requestsPerMinute} deliveries a minute`],
      ],
      style,
    ),
});
