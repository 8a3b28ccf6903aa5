import {
  getMessage,
  LIMITS,
  listMessageAttempts,
  listMessages,
  publishMessage,
  replayMessage,
  replayMessages,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { MessageLists } from '../domain/messages/message-lists.ts';
import type { MessageReplays } from '../domain/messages/message-replays.ts';
import type { Publisher } from '../domain/messages/publisher.ts';

export interface MessageRouteServices {
  publisher: Publisher;
  messageLists: MessageLists;
  messageReplays: MessageReplays;
}

const LISTS_PER_MINUTE = 600;
/** Data with escapes and white space is longer than its JSON. */
const BODY_BYTES = 4 * LIMITS.messageBytes;
const reading = { auth: 'caller', perMinute: LISTS_PER_MINUTE } as const;
const changing = { auth: 'caller', perMinute: LISTS_PER_MINUTE } as const;

/** @spec docs/messages.md */
export function messageRoutes(
  http: Http,
  { publisher, messageLists, messageReplays }: MessageRouteServices,
): void {
  mount(http, publishMessage, { auth: 'caller', bodyLimitBytes: BODY_BYTES }, ({ body, caller, request }) =>
    publisher.publish(body, { namespaceId: caller.namespaceId, traceId: request.traceId }),
  );
  mount(http, listMessages, reading, ({ query, caller: { namespaceId, application } }) =>
    messageLists.list(namespaceId, { ...query, ...(application === undefined ? {} : { application }) }),
  );
  mount(http, getMessage, reading, ({ params, caller: { namespaceId, application } }) =>
    messageLists.get(namespaceId, params.id, application),
  );
  mount(http, listMessageAttempts, reading, async ({ params, query, caller }) => {
    const { namespaceId, application } = caller;
    await messageLists.require(namespaceId, params.id, application);
    return messageLists.attempts({ ...query, namespaceId, application, messageId: params.id });
  });
  mount(http, replayMessage, changing, ({ params, body, caller: { namespaceId, application } }) =>
    messageReplays.one({ namespaceId, application }, params.id, body.endpointId),
  );
  mount(http, replayMessages, changing, ({ body, caller: { namespaceId } }) => {
    const { limit, dryRun, cursor, ...filter } = body;
    return messageReplays.many({ namespaceId }, filter, { limit, dryRun, cursor });
  });
}
