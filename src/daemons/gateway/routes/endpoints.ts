import {
  type Caller,
  createEndpoint,
  deleteEndpoint,
  getEndpoint,
  listEndpointAttempts,
  listEndpoints,
  replayEndpoint,
  rotateEndpoint,
  testEndpoint,
  updateEndpoint,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import { minutes } from '../../../kit/time/duration.ts';
import type { EndpointAdmin, EndpointScope } from '../domain/messages/endpoint-admin.ts';
import type { MessageLists } from '../domain/messages/message-lists.ts';
import type { MessageReplays } from '../domain/messages/message-replays.ts';
import type { TestSends } from '../domain/messages/test-sends.ts';

export interface EndpointRouteServices {
  endpointAdmin: EndpointAdmin;
  messageLists: MessageLists;
  messageReplays: MessageReplays;
  testSends: TestSends;
}

const LISTS_PER_MINUTE = 600;
const CHANGES_PER_MINUTE = 600;
const TESTS_PER_MINUTE = 60;
const reading = { auth: 'caller', perMinute: LISTS_PER_MINUTE } as const;

/** @spec docs/messages.md */
export function endpointRoutes(http: Http, services: EndpointRouteServices): void {
  const { endpointAdmin, messageLists, messageReplays, testSends } = services;
  const changing = {
    auth: 'caller',
    perMinute: {
      limiter: http.kit.createLimiter('endpoint changes', { windowMs: minutes(1) }),
      limit: CHANGES_PER_MINUTE,
    },
  } as const;
  const testing = { auth: 'caller', perMinute: TESTS_PER_MINUTE } as const;

  mount(http, createEndpoint, changing, (call) => endpointAdmin.create(scopeOf(call), call.body));
  mount(http, listEndpoints, reading, (call) => endpointAdmin.list(scopeOf(call), call.query));
  mount(http, getEndpoint, reading, (call) => endpointAdmin.get(scopeOf(call), call.params.id));
  mount(http, updateEndpoint, changing, (call) =>
    endpointAdmin.update(scopeOf(call), call.params.id, call.body),
  );
  mount(http, deleteEndpoint, changing, async (call) => {
    await endpointAdmin.remove(scopeOf(call), call.params.id);
    return { deleted: true as const };
  });
  mount(http, rotateEndpoint, changing, (call) =>
    endpointAdmin.rotate(scopeOf(call), call.params.id, call.body.secret),
  );
  mount(http, testEndpoint, testing, (call) =>
    testSends.send(scopeOf(call), call.params.id, { ...call.body, traceId: call.request.traceId }),
  );
  mount(http, listEndpointAttempts, reading, async (call) => {
    const { namespaceId, id } = await endpointAdmin.require(scopeOf(call), call.params.id);
    const { outcome, ...page } = call.query;
    const succeeded = outcome === undefined ? undefined : outcome === 'succeeded';
    const { application } = call.caller;
    return messageLists.attempts({ ...page, namespaceId, application, endpointId: id, succeeded });
  });
  mount(http, replayEndpoint, changing, (call) => {
    const { since, until, status, ...options } = call.body;
    const filter = { endpointId: call.params.id, since, until, status };
    return messageReplays.many(scopeOf(call), filter, options);
  });
}

function scopeOf({ caller: { namespaceId, application } }: { caller: Caller }): EndpointScope {
  return { namespaceId, application };
}
