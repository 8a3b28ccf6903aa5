import { z } from 'zod';
import { listSources, type Source } from '../../../contracts/index.ts';
import { allPages } from '../../all-pages.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags, pageOf, pageShort } from '../../list-page.ts';
import { table } from '../../table.ts';
import { targetText } from './source-text.ts';

/** @spec docs/sources.md */
export const list = defineCommand({
  name: 'sources list',
  summary: 'List sources with their destinations',
  example: 'svc sources list',
  args: z.object(pageFlags),
  short: pageShort,
  async run(flags, { client }) {
    const items = await allPages((cursor) =>
      client.call(listSources, { query: { limit: 500, ...(cursor ? { cursor } : {}) } }),
    );
    return ok(pageOf(items, flags, ({ name }) => name));
  },
  text({ items, nextCursor }: ListPage<Source>, style) {
    if (items.length === 0) return 'There are no sources. Create one with `svc sources create`.';
    const rows = items.map(({ name, provider, auth, url, provisioned, paused, destinations }) => [
      name,
      provider ?? auth,
      paused ? style.yellow('paused') : provisioned ? style.green('ready') : style.yellow('no secret'),
      destinations.map(targetText).join(', '),
      url,
    ]);
    const columns = ['source', 'sender', 'state', 'destinations', 'url'];
    return table(columns, rows, style) + moreLine(nextCursor, style);
  },
});
