import { z } from 'zod';
import { listSecrets, type Secret } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags, pageOf, pageShort } from '../../list-page.ts';
import { table } from '../../table.ts';
import { timeText } from '../../time-text.ts';
import { inTenant, tenantFlag } from './secret-args.ts';

/** @spec docs/secrets.md */
export const list = defineCommand({
  name: 'secrets list',
  summary: 'List secrets without their values',
  example: 'svc secrets list',
  idField: 'name',
  args: z.object({ tenant: tenantFlag, ...pageFlags }),
  short: pageShort,
  async run({ tenant, ...flags }, { client }) {
    const { items } = await client.call(listSecrets, {}, inTenant(tenant));
    return ok(pageOf(items, flags, ({ name }) => name));
  },
  text({ items, nextCursor }: ListPage<Secret>, style) {
    const rows = items.map(({ name, version, createdAt, createdBy, lastUsedAt, expiresAt }) => [
      name,
      String(version),
      timeText(createdAt),
      createdBy,
      timeText(lastUsedAt),
      timeText(expiresAt),
    ]);
    const head = ['secret', 'version', 'set', 'by', 'last used', 'expires'];
    return table(head, rows, style) + moreLine(nextCursor, style);
  },
});
