import { z } from 'zod';
import { listMessageAttempts, type MessageAttempt } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, pageFlags, pageShort } from '../../list-page.ts';
import { pagesUpTo } from '../../pages-up-to.ts';
import { attemptsTable } from '../endpoints/endpoint-text.ts';
import { endpointFlag, messageArg } from './message-args.ts';

/** @spec docs/messages.md */
export const attempts = defineCommand({
  name: 'messages attempts',
  summary: 'List the attempts of a message with the answers, newest first',
  example: 'svc messages attempts msg_01k8x2v7w9m4q5r6s7t8a9b0cd',
  args: z.object({ id: messageArg, endpoint: endpointFlag, ...pageFlags }),
  short: pageShort,
  async run({ id, endpoint, ...page }, { client }) {
    const filter = endpoint === undefined ? {} : { endpointId: endpoint };
    return ok(
      await pagesUpTo(
        page,
        (part) => client.call(listMessageAttempts, { params: { id }, query: { ...filter, ...part } }),
        200,
      ),
    );
  },
  text: (page: ListPage<MessageAttempt>, style) => attemptsTable(page, 'endpointId', style),
});
