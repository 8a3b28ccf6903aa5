import { z } from 'zod';
import { listEndpoints, type OutgoingEndpoint } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags, pageShort } from '../../list-page.ts';
import { pagesUpTo } from '../../pages-up-to.ts';
import { table } from '../../table.ts';
import { applicationFlag } from './endpoint-args.ts';
import { shareText, stateText } from './endpoint-text.ts';

/** @spec docs/messages.md */
export const list = defineCommand({
  name: 'endpoints list',
  summary: 'List the endpoints that receive messages, newest first',
  example: 'svc endpoints list --application customer-7',
  idField: 'id',
  args: z.object({
    application: applicationFlag,
    disabled: z.boolean().default(false).describe('only disabled ones'),
    ...pageFlags,
  }),
  short: pageShort,
  async run({ application, disabled, ...page }, { client }) {
    const filter = {
      ...(application ? { application } : {}),
      ...(disabled ? { disabled: 'true' as const } : {}),
    };
    return ok(
      await pagesUpTo(page, (part) => client.call(listEndpoints, { query: { ...filter, ...part } }), 500),
    );
  },
  text({ items, nextCursor }: ListPage<OutgoingEndpoint>, style) {
    if (items.length === 0) return 'There are no endpoints. Create one with `svc endpoints create <url>`.';
    const rows = items.map((item) => [
      item.id,
      stateText(item, style),
      shareText(item),
      item.application ?? '',
      item.types.join(', '),
      item.url,
    ]);
    return (
      table(['endpoint', 'state', 'succeeded', 'application', 'types', 'url'], rows, style) +
      moreLine(nextCursor, style)
    );
  },
});
