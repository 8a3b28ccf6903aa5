import { z } from 'zod';
import { listQueues, type Queue } from '../../../contracts/index.ts';
import { formatDuration } from '../../../kit/time/duration.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags, pageOf, pageShort } from '../../list-page.ts';
import { table } from '../../table.ts';

/** @spec docs/queues.md */
export const list = defineCommand({
  name: 'queues list',
  summary: 'List queues with the numbers of their items',
  example: 'svc queues list',
  idField: 'name',
  args: z.object(pageFlags),
  short: pageShort,
  async run(flags, { client }) {
    const { items } = await client.call(listQueues, {});
    return ok(pageOf(items, flags, ({ name }) => name));
  },
  text({ items, nextCursor }: ListPage<Queue>, style) {
    const rows = items.map(({ name, waiting, leased, dead, oldestAgeMs }) => [
      name,
      String(waiting),
      String(leased),
      dead === 0 ? '0' : style.red(String(dead)),
      oldestAgeMs === null ? '-' : formatDuration(oldestAgeMs),
    ]);
    const head = ['queue', 'waiting', 'leased', 'dead', 'oldest'];
    return table(head, rows, style) + moreLine(nextCursor, style);
  },
});
