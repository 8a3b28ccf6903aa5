import type { MessageAttempt } from '../../../../contracts/index.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { EndedAttempt, MessageStore } from '../../../../store/ports/index.ts';
import { isSuccess } from './dispatch/retry-plan.ts';
import { type EndpointAdmin, type EndpointScope, unknownEndpoint } from './endpoint-admin.ts';
import type { EndpointRegistry } from './endpoint-registry.ts';
import { attemptView } from './message-lists.ts';
import type { MessageSender } from './message-sender.ts';
import { bodyOf } from './publisher.ts';
import type { SortableIds } from './sortable-ids.ts';

export interface TestSendsDeps {
  store: Pick<MessageStore, 'addTest'>;
  endpoints: Pick<EndpointAdmin, 'require'>;
  registry: Pick<EndpointRegistry, 'find'>;
  sender: Pick<MessageSender, 'send'>;
  ids: SortableIds;
  clock: Clock;
}

/** Sends test messages: once, now, and also to a disabled endpoint. They do not count as failures. */
export class TestSends {
  readonly #deps: TestSendsDeps;

  constructor(deps: TestSendsDeps) {
    this.#deps = deps;
  }

  async send(
    scope: EndpointScope,
    endpointId: string,
    { type, data = { test: true }, traceId }: { type: string; data?: unknown; traceId: string },
  ): Promise<MessageAttempt> {
    const { store, endpoints, registry, sender, ids, clock } = this.#deps;
    const { namespaceId, application } = await endpoints.require(scope, endpointId);
    const known = registry.find(endpointId);
    // The registry can be older than the store when the endpoint was moved to another application.
    if (!known || known.record.application !== application) throw unknownEndpoint(endpointId);
    const createdAt = clock.now();
    const message = { id: ids.next('msg'), application, type, createdAt, traceId };
    const body = bodyOf({ type, timestamp: createdAt, data });
    const { retryAfter: _, ...sent } = await sender.send(known, { ...message, body });
    const succeeded = isSuccess(sent.responseStatus);
    const attempt: EndedAttempt = {
      ...sent,
      ...{ messageId: message.id, endpointId, number: 1, trigger: 'test', tries: 1, succeeded },
      // A failed test is no dead letter: it raises no alert and is never replayed.
      ...{ status: succeeded ? 'succeeded' : 'cancelled', nextAttemptAt: null, endedAt: clock.now() },
    };
    await store.addTest(
      {
        ...message,
        body,
        namespaceId,
        timestamp: createdAt,
        endpointIds: [endpointId],
        key: null,
      },
      attempt,
    );
    const { status: _status, tries: _tries, endedAt: _endedAt, ...shown } = attempt;
    return attemptView({ ...shown, application, type });
  }
}
