import { z } from 'zod';
import { listEndpointAttempts, type MessageAttempt } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, pageFlags, pageShort } from '../../list-page.ts';
import { pagesUpTo } from '../../pages-up-to.ts';
import { endpointArg } from './endpoint-args.ts';
import { attemptsTable } from './endpoint-text.ts';

const SHOWN = 50;

/** @spec docs/messages.md */
export const attempts = defineCommand({
  name: 'endpoints attempts',
  summary: 'List the attempts of an endpoint with the answers, newest first',
  example: 'svc endpoints attempts ep_01k8x2v7w9m4q5r6s7t8a9b0cd --failed',
  args: z.object({
    id: endpointArg,
    failed: z.boolean().default(false).describe('only failed ones'),
    ...pageFlags,
    limit: pageFlags.limit.describe(`maximum number; default ${SHOWN}`),
  }),
  short: pageShort,
  async run({ id, failed, limit = SHOWN, cursor }, { client }) {
    const filter = failed ? { outcome: 'failed' as const } : {};
    return ok(
      await pagesUpTo(
        { limit, cursor },
        (part) => client.call(listEndpointAttempts, { params: { id }, query: { ...filter, ...part } }),
        200,
      ),
    );
  },
  text: (page: ListPage<MessageAttempt>, style) => attemptsTable(page, 'messageId', style),
});
