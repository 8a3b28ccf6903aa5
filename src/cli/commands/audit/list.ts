import { z } from 'zod';
import { type AuditEntry, listAudit } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine } from '../../list-page.ts';
import { selectedNamespace } from '../../selected-namespace.ts';
import { table } from '../../table.ts';
import { timeText } from '../../time-text.ts';
import { parseSince } from '../logs/filter.ts';

/** @spec docs/security.md "Audit log" */
export const list = defineCommand({
  name: 'audit list',
  summary: 'List changes with their callers, newest first',
  example: 'svc audit list --action plugin. --since 7d',
  args: z.object({
    actor: z.string().min(1).optional().describe('only changes by this host id'),
    action: z.string().min(1).optional().describe('only this action; "plugin." means all of plugins'),
    object: z.string().min(1).optional().describe('only changes of this object'),
    since: z.string().optional().describe('start: 30s, 10m, 2h, 1d ago, or a time'),
    limit: z.coerce.number().int().min(1).max(500).default(50).describe('maximum number; default 50'),
    cursor: z.coerce.number().int().min(1).optional().describe('nextCursor of the previous page'),
  }),
  short: { limit: 'n' },
  async run({ since, ...filter }, { client, globals, clock }) {
    const namespaceId = selectedNamespace(globals);
    const query = {
      ...Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined)),
      ...(namespaceId ? { namespaceId } : {}),
      ...(since ? { since: new Date(parseSince(since, clock.now())).toISOString() } : {}),
    };
    return ok(await client.call(listAudit, { query }));
  },
  text({ items, nextCursor }: ListPage<AuditEntry>, style) {
    if (items.length === 0) return 'No matching changes.';
    const rows = items.map(({ sequence, at, actor, action, object, namespaceId, outcome }) => [
      String(sequence),
      timeText(at),
      actor,
      action,
      object,
      namespaceId,
      outcome === 'succeeded' ? outcome : style.red(outcome),
    ]);
    const head = ['entry', 'time', 'actor', 'action', 'object', 'namespace', 'outcome'];
    return table(head, rows, style) + moreLine(nextCursor, style);
  },
});
