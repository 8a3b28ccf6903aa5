import { z } from 'zod';
import { getSource, type ReplyOf } from '../../../contracts/index.ts';
import { unprotected } from '../../../webhooks/schemes/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { pairs } from '../../table.ts';
import { nameArg } from './source-args.ts';
import { destinationsTable } from './source-text.ts';

/** @spec docs/sources.md */
export const show = defineCommand({
  name: 'sources show',
  summary: 'Show a source, and how its newest deliveries ended at each destination',
  example: 'svc sources show payments',
  args: z.object({ name: nameArg }),
  run: async ({ name }, { client }) => ok(await client.call(getSource, { params: { name } })),
  text(source: ReplyOf<typeof getSource>, style) {
    const { name, provider, auth, url, provisioned, protects, paused, declared, counted } = source;
    const facts = pairs(
      [
        ['source', name],
        ['sender', provider ?? auth],
        ['url', url],
        ['secret', provisioned ? 'provisioned' : 'missing'],
        ...(protects
          ? [['not protected', unprotected(protects).join(', ') || 'nothing'] as [string, string]]
          : []),
        ['state', paused ? 'paused' : 'active'],
        ...(declared ? [['declared in', 'svc.config.json'] as [string, string]] : []),
        ['counted', `${counted.complete ? '' : 'the newest '}${counted.deliveries} deliveries`],
      ],
      style,
    );
    return `${facts}\n\n${destinationsTable(source, style)}`;
  },
});
