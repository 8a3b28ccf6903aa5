import { setTimeout as sleep } from 'node:timers/promises';
import { streamDeliveries } from '../../../contracts/index.ts';
import { createEventStreams, type EndpointContext, type Http, mount } from '../../../http/index.ts';
import type { ServerSentEvent } from '../../../kit/streams/server-sent-events.ts';
import type { DeliveryRecord, WebhookInbox } from '../../../store/ports/index.ts';
import { nativeRule } from '../domain/access/access-rules.ts';
import { requireAccess } from '../domain/access/require-access.ts';
import type { Authenticator } from '../domain/identity/authenticator.ts';
import { textOf, viewOf } from '../domain/webhooks/admin/delivery-view.ts';
import { formatCursor, parseCursor, readTail, type TailCursor } from '../domain/webhooks/admin/tail.ts';
import { shownHeaders } from '../domain/webhooks/receive/request-head.ts';
import type { Resign } from '../domain/webhooks/verify/resigning.ts';
import { subjectOf } from './subject.ts';

export interface WebhookStreamServices {
  tailedInbox: WebhookInbox;
  resign: Resign;
  authenticator: Pick<Authenticator, 'authenticate'>;
}

type Call = EndpointContext<typeof streamDeliveries>;

/** Each stream polls the store five times a second, so the number of streams is limited. */
const MAX_STREAMS = 200;
/** Poll interval. Uses wall-clock time even with a test clock, because other processes also add records. */
const POLL_INTERVAL_MS = 200;

/** @spec docs/webhooks.md "Tail" */
export function webhookStreamRoutes(http: Http, services: WebhookStreamServices): void {
  const streams = createEventStreams(http, { what: 'deliveries', count: MAX_STREAMS });
  mount(http, streamDeliveries, { auth: 'caller' }, async (call) => {
    await streams.send(call, (signal) => follow(services, call, signal));
    return call.reply;
  });
}

/** Sends new records until the client disconnects or its token expires. The client can reconnect with its cursor. */
async function* follow(
  services: WebhookStreamServices,
  call: Call,
  signal: AbortSignal,
): AsyncGenerator<ServerSentEvent[], void> {
  const { namespaceId } = call.caller;
  let cursor = await startOf(services.tailedInbox, call);
  const start = formatCursor(cursor);
  yield [{ comment: `from ${start}`, id: start, event: 'hello', data: '{}' }];
  for (;;) {
    // The token is verified at each poll, so that the stream ends when the token or its role is revoked, or expires.
    await requireAllowed(services, call);
    const events = await readTail(services.tailedInbox, namespaceId, cursor);
    for (const { kind, record, cursor: reached } of events) {
      cursor = reached;
      const isWanted = matches(call.query, record);
      const data = isWanted ? JSON.stringify(await streamed(record, services, call)) : '{}';
      yield [{ id: formatCursor(cursor), event: isWanted ? kind : 'passed', data }];
    }
    if (events.length === 0) await sleep(POLL_INTERVAL_MS, undefined, { signal });
  }
}

/** Throws if the token is not valid any more, or if its role or scopes no longer allow the stream. */
async function requireAllowed(
  { authenticator }: WebhookStreamServices,
  { request, caller }: Call,
): Promise<void> {
  const principal = await authenticator.authenticate(subjectOf(request));
  const { method, path } = streamDeliveries;
  const { id: requestId, traceId } = request;
  const { namespaceId } = caller;
  const checked = { method, route: path, requestId, traceId };
  requireAccess({ ...principal, namespaceId }, nativeRule(method, path), checked, request.server.kit.logger);
}

/** Returns the cursor at which the stream starts. This is the client's cursor, or else the latest position. */
async function startOf(inbox: WebhookInbox, { request, query }: Call): Promise<TailCursor> {
  const from = request.headers['last-event-id']?.toString() ?? query.cursor;
  return from === undefined ? { position: await inbox.latest(), open: [] } : parseCursor(from);
}

function matches({ pluginId, event }: Call['query'], record: DeliveryRecord): boolean {
  return (pluginId ?? record.pluginId) === record.pluginId && (event ?? record.event) === record.event;
}

async function streamed(record: DeliveryRecord, { resign }: WebhookStreamServices, { query }: Call) {
  const signature = query.sign === undefined ? {} : { signature: await resign(record) };
  return { ...viewOf(record), headers: shownHeaders(record.headers), ...textOf(record.body), ...signature };
}
