import { z } from 'zod';
import {
  getWebhookProvider,
  listWebhookProviders,
  PROVIDER_IDS,
  type WebhookProvider,
  type WebhookProviderDetails,
} from '../../../contracts/index.ts';
import { unprotected } from '../../../webhooks/schemes/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import type { Style } from '../../style.ts';
import { pairs, table } from '../../table.ts';
import { lineWidth, wrapProse } from '../../wrap.ts';

type Shown = { items: WebhookProvider[] } | WebhookProviderDetails;

/** @spec docs/webhooks.md "Signatures" */
export const providers = defineCommand({
  name: 'webhooks providers',
  summary: 'List the providers whose webhooks can be declared by name, or show one',
  example: 'svc webhooks providers stripe',
  args: z.object({ id: z.enum(PROVIDER_IDS).optional().describe('provider id') }),
  positionals: ['id'],
  async run({ id }, { client }): Promise<ReturnType<typeof ok<Shown>>> {
    if (id === undefined) return ok(await client.call(listWebhookProviders));
    return ok(await client.call(getWebhookProvider, { params: { id } }));
  },
  text: (shown: Shown, style) =>
    'items' in shown ? listText(shown.items, style) : detailsText(shown, style),
});

function listText(items: readonly WebhookProvider[], style: Style): string {
  const rows = items.map(({ id, name, protects, secretFrom }) => [
    id,
    name,
    secretFrom,
    unprotected(protects).join(', ') || '-',
  ]);
  return table(['id', 'name', 'secret', 'not protected'], rows, style);
}

function detailsText(provider: WebhookProviderDetails, style: Style): string {
  const { id, name, protects, secretHelp, events, ipAllow, checkedOn, sources, pitfalls, unverified } =
    provider;
  const width = lineWidth(process.stdout);
  const facts = pairs(
    [
      ['id', id],
      ['name', name],
      ['not protected', unprotected(protects).join(', ') || '-'],
      ['checked on', checkedOn],
      ['verified', unverified === null ? 'yes' : 'no'],
    ],
    style,
  );
  const sections: Array<[title: string, lines: readonly string[]]> = [
    ['secret', [secretHelp]],
    ['pitfalls', pitfalls],
    ['events', events.length === 0 ? [] : [events.join(', ')]],
    ['addresses', ipAllow.length === 0 ? [] : [ipAllow.join(', ')]],
    ['unverified', unverified === null ? [] : [unverified]],
    ['sources', sources],
  ];
  return [
    facts,
    ...sections
      .filter(([, lines]) => lines.length > 0)
      .map(([title, lines]) =>
        [style.bold(title), ...lines.map((line) => wrapProse(line, width))].join('\n'),
      ),
  ].join('\n\n');
}
