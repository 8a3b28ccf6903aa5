import { z } from 'zod';
import { type DeclaredEventType, listEventTypes } from '../../contracts/index.ts';
import { defineCommand, ok } from '../define-command.ts';
import { type ListPage, moreLine, pageFlags, pageOf, pageShort } from '../list-page.ts';
import { table } from '../table.ts';

/** @spec docs/emit.md */
export const eventTypes = defineCommand({
  name: 'event-types',
  summary: 'List the types of messages that plugins declare',
  example: 'svc event-types',
  idField: 'type',
  args: z.object(pageFlags),
  short: pageShort,
  async run(flags, { client }) {
    const { items } = await client.call(listEventTypes, {});
    return ok(pageOf(items, flags, ({ type }) => type));
  },
  text({ items, nextCursor }: ListPage<DeclaredEventType>, style) {
    if (items.length === 0) return 'No plugin declares an event type. Add "events" to a manifest.';
    const rows = items.map(({ type, pluginId, description }) => [type, pluginId, description ?? '']);
    return table(['type', 'plugin', 'description'], rows, style) + moreLine(nextCursor, style);
  },
});
