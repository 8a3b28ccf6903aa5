import { emitMessage, emitRunMessage, LIMITS, listEventTypes } from '../../../contracts/index.ts';
import { type Http, mount, upstreamIdentity } from '../../../http/index.ts';
import type { EmittedMessages } from '../domain/event-types/emitted-messages.ts';
import type { EventTypes } from '../domain/event-types/event-types.ts';

export interface EventTypeServices {
  eventTypes: EventTypes;
  emittedMessages: EmittedMessages;
  internalSecret: string;
}

/** Data with escapes and white space is longer than its JSON. */
const BODY_BYTES = 4 * LIMITS.messageBytes;

/**
 * Routes of the event types that plugins declare, and of `ctx.emit`. Services that run plugins authenticate with the
 * service key. @spec docs/emit.md
 */
export function eventTypeRoutes(
  http: Http,
  { eventTypes, emittedMessages, internalSecret }: EventTypeServices,
): void {
  mount(http, listEventTypes, { auth: 'caller' }, async () => ({ items: await eventTypes.list() }));
  const identify = upstreamIdentity({ internalSecret, mode: 'required', logger: http.kit.logger });
  mount(
    http,
    emitMessage,
    { auth: 'open', bodyLimitBytes: BODY_BYTES },
    async ({ params, body, request }) => {
      const { namespaceId } = await identify(request);
      return emittedMessages.emit(params.pluginId, body, { namespaceId, traceId: request.traceId });
    },
  );
  mount(http, emitRunMessage, { auth: 'open', bodyLimitBytes: BODY_BYTES }, async ({ body, request }) => {
    const { namespaceId } = await identify(request);
    return emittedMessages.emitOfRun(body, { namespaceId, traceId: request.traceId });
  });
}
