import { z } from 'zod';
import { type ReplyOf, whoAmI } from '../../contracts/index.ts';
import { defineCommand, ok } from '../define-command.ts';
import { pairs } from '../table.ts';
import { timeText } from '../time-text.ts';

export const whoami = defineCommand({
  name: 'whoami',
  summary: 'Show the current identity',
  example: 'svc whoami',
  args: z.object({}),
  run: async (_args, { client }) => ok(await client.call(whoAmI)),
  text: ({ hostId, namespaceId, kind, admin, expiresAt }: ReplyOf<typeof whoAmI>, style) =>
    pairs(
      [
        ['host id', hostId],
        ['namespace', namespaceId],
        ['token', kind],
        ['administrator', admin ? 'yes' : 'no'],
        ['expires', timeText(expiresAt)],
      ],
      style,
    ),
});
