import { z } from 'zod';
import { listSchedules, type Schedule } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags, pageOf, pageShort } from '../../list-page.ts';
import { schedulesTable } from '../workflows/views.ts';

export const list = defineCommand({
  name: 'schedules list',
  summary: 'List schedules with their next and last times',
  example: 'svc schedules list',
  args: z.object(pageFlags),
  short: pageShort,
  async run(flags, { client }) {
    const reply = await client.call(listSchedules);
    return ok({ ...reply, ...pageOf(reply.items, flags, ({ id }) => id) });
  },
  text: ({ items, nextCursor }: ListPage<Schedule>, style) =>
    schedulesTable(items, style) + moreLine(nextCursor, style),
});
