import { z } from 'zod';
import { getHost, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { pairs } from '../../table.ts';
import { timeText } from '../../time-text.ts';

/** @spec docs/gateway.md "Who may call" */
export const show = defineCommand({
  name: 'hosts show',
  summary: 'Show one host',
  example: 'svc hosts show host_01b8dac5',
  idField: 'hostId',
  args: z.object({ host: z.string().min(1).describe('host id') }),
  run: async ({ host }, { client }) => ok(await client.call(getHost, { params: { hostId: host } })),
  text: (host: ReplyOf<typeof getHost>, style) =>
    pairs(
      [
        ['host', host.hostId],
        ['name', host.name],
        ['namespace', host.namespaceId],
        ['status', host.status],
        ['client', host.clientId],
        ['session', host.sessionId ?? '-'],
        ['capabilities', host.capabilities.join(', ') || '-'],
        ['labels', labelsText(host.labels)],
        ['registered', timeText(host.createdAt)],
        ['connected', timeText(host.connectedAt)],
        ['last seen', timeText(host.lastSeenAt)],
        ...(host.revokedAt === null ? [] : [['revoked', timeText(host.revokedAt)] as [string, string]]),
      ],
      style,
    ),
});

const labelsText = (labels: Record<string, string>): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ') || '-';
