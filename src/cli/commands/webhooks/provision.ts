import { text } from 'node:stream/consumers';
import { z } from 'zod';
import {
  EventName,
  InstanceId,
  listWebhooks,
  PluginId,
  provisionWebhook,
  type ReplyOf,
} from '../../../contracts/index.ts';
import type { Client } from '../../../http/index.ts';
import { PROVIDERS } from '../../../webhooks/providers/index.ts';
import { unprotected } from '../../../webhooks/schemes/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';
import { pairs } from '../../table.ts';

/**
 * Reads the secret from stdin, without the newline that shells append. Throws UsageError for a terminal or empty input.
 */
async function readSecret(): Promise<string> {
  if (process.stdin.isTTY)
    throw new UsageError('--secret-stdin requires a pipe on stdin.', {
      hint: 'pbpaste | svc webhooks provision <plugin> <event> --secret-stdin',
    });
  const secret = (await text(process.stdin)).replace(/\r?\n$/, '');
  if (secret === '') throw new UsageError('--secret-stdin: stdin was empty.');
  return secret;
}

/**
 * Returns the provider that generates the secret of this webhook, if any. Errors are ignored, because the name is used
 * only for a hint.
 */
async function secretProvider(client: Client, plugin: string, event: string): Promise<string | undefined> {
  const items = await client.call(listWebhooks, {}).then(
    (list) => list.items,
    () => [],
  );
  const declared = items.find((item) => item.pluginId === plugin && item.event === event);
  const provider = PROVIDERS.find(({ id }) => id === declared?.provider);
  return provider?.secretFrom === 'sender' ? provider.name : undefined;
}

function providerSecretHint(
  provider: string,
  { plugin, event, instance }: { plugin: string; event: string; instance: string | undefined },
): string {
  const words = [plugin, event, ...(instance === undefined ? [] : ['--instance', instance])].join(' ');
  return `${provider} only accepts the secret it generated itself. Import that one: pbpaste | svc webhooks provision ${words} --secret-stdin`;
}

/** @spec Webhook admin API */
export const provision = defineCommand({
  name: 'webhooks provision',
  summary: 'Create or rotate the secret of a declared webhook',
  example: 'svc webhooks provision github push',
  args: z.object({
    plugin: PluginId.describe('plugin id'),
    event: EventName.describe('event declared by the plugin'),
    instance: InstanceId.optional().describe("instance of a 'multi' webhook"),
    namespaceInUrl: z
      .boolean()
      .optional()
      .describe('include the namespace in the URL, for senders that cannot set headers; kept on rotation'),
    // The parser stores this flag as `namespaceInUrl: false`.
    noNamespaceInUrl: z
      .boolean()
      .default(false)
      .describe('require the namespace header, also from a provider that cannot set headers'),
    secretStdin: z
      .boolean()
      .default(false)
      .describe('read the secret from stdin, such as the one from Stripe, Slack or Shopify'),
    generate: z
      .boolean()
      .default(false)
      .describe('generate a secret to replace the one from Stripe, Slack or Shopify'),
  }),
  async run(args, { client, ui }) {
    const { plugin, event, instance, namespaceInUrl, secretStdin, generate } = args;
    if (secretStdin && generate) throw new UsageError('Use --secret-stdin or --generate, not both.');
    const secret = secretStdin ? await readSecret() : undefined;
    const reply = await client.call(provisionWebhook, {
      body: {
        pluginId: plugin,
        event,
        ...(instance === undefined ? {} : { instanceId: instance }),
        ...(namespaceInUrl === undefined ? {} : { namespaceInUrl }),
        ...(secret === undefined ? {} : { secret }),
        ...(generate ? { generate } : {}),
      },
    });
    if (secret === undefined) {
      ui.warn('Copy the secret now; it is shown only once.');
      const provider = await secretProvider(client, plugin, event);
      if (provider) ui.warn(providerSecretHint(provider, { plugin, event, instance }));
    }
    if (reply.namespaceInUrl && !namespaceInUrl)
      ui.note('The URL contains the namespace, because most senders cannot set the header x-svc-namespace.');
    if (reply.rotated) ui.note('The previous secret remains valid for 24 hours.');
    return ok(reply);
  },
  text: ({ url, secret, rotated, requestsPerMinute, protects }: ReplyOf<typeof provisionWebhook>, style) =>
    pairs(
      [
        ['url', url],
        ['secret', secret === '' ? '(as provided)' : secret],
        ['rotated', rotated ? 'yes' : 'no'],
        ['limit', `${requestsPerMinute} deliveries per minute`],
        ...(protects ? [['not protected', unprotected(protects).join(', ') || '-'] as [string, string]] : []),
      ],
      style,
    ),
});
