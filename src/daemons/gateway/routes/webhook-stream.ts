import { setTimeout as sleep } from 'node:timers/promises';
import { streamDeliveries } from '../../../contracts/index.ts';
import {
  abortedWithCaller,
  createReplyStream,
  type EndpointContext,
  type Http,
  mount,
  type ReplyStream,
} from '../../../http/index.ts';
import { messageOf, PlatformError } from '../../../kit/errors.ts';
import type { DeliveryRecord, WebhookInbox } from '../../../store/ports/index.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { Authenticator } from '../domain/identity/authenticator.ts';
import { textOf, viewOf } from '../domain/webhooks/delivery-view.ts';
import type { Resign } from '../domain/webhooks/resigning.ts';
import { formatCursor, parseCursor, readTail, type TailCursor } from '../domain/webhooks/tail.ts';
import { subjectOf } from './subject.ts';
import { scopeOf } from './webhook-scope.ts';

export interface WebhookStreamServices {
  tailedInbox: WebhookInbox;
  resign: Resign;
  admins: Admins;
  authenticator: Pick<Authenticator, 'authenticate'>;
}

type Call = EndpointContext<typeof streamDeliveries>;

/** Each looks into the store five times a second. */
const MOST_STREAMS = 200;
/** How soon a stream sees what any process of the gateway wrote; in real time, as other processes write. */
const LOOK_EVERY_MS = 200;
const PING_EVERY_MS = 10_000;

/** @spec docs/webhooks.md "Tail" */
export function webhookStreamRoutes(http: Http, services: WebhookStreamServices): void {
  let streams = 0;
  mount(http, streamDeliveries, { auth: 'caller' }, async (call) => {
    if (streams >= MOST_STREAMS) {
      const headers = { 'retry-after': '10' };
      throw new PlatformError('SERVICE_UNAVAILABLE', `${MOST_STREAMS} callers follow deliveries already.`, {
        headers,
      });
    }
    streams++;
    try {
      await send(http, services, call);
    } finally {
      streams--;
    }
    return call.reply as never;
  });
}

/** Writes events until the reader goes away, its token ends, or the gateway stops: the reader comes back with its cursor. */
async function send(http: Http, services: WebhookStreamServices, call: Call): Promise<void> {
  const { request, reply } = call;
  // What fails before the first byte is still answered as an error.
  const namespaceId = scopeOf(services.admins, call);
  let cursor = await startOf(services.tailedInbox, call);
  const stream = createReplyStream(reply);
  const gone = abortedWithCaller(reply).signal;
  stream.start({ 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' });
  try {
    await write(stream, { comment: `from ${formatCursor(cursor)}`, id: cursor, event: 'hello', data: '{}' });
    let saidAt = performance.now();
    while (!http.kit.draining) {
      // As a socket does, it ends with the token that opened it.
      await services.authenticator.authenticate(subjectOf(request));
      const events = await readTail(services.tailedInbox, namespaceId, cursor);
      for (const { kind, record, cursor: reached } of events) {
        cursor = reached;
        const isWanted = matches(call.query, record);
        const data = isWanted ? JSON.stringify(await streamed(record, services, call)) : '{}';
        await write(stream, { id: cursor, event: isWanted ? kind : 'passed', data });
      }
      if (events.length > 0) saidAt = performance.now();
      else await sleep(LOOK_EVERY_MS, undefined, { signal: gone });
      if (performance.now() - saidAt < PING_EVERY_MS) continue;
      saidAt = performance.now();
      await write(stream, { event: 'ping', data: '{}' });
    }
  } catch (error) {
    if (!gone.aborted)
      http.kit.logger.warn(`A stream of deliveries ended: ${messageOf(error)}`, { requestId: request.id });
  }
  stream.end();
  http.kit.account(request, 200);
}

/** Throws VALIDATION_ERROR. */
async function startOf(inbox: WebhookInbox, { request, query }: Call): Promise<TailCursor> {
  const from = request.headers['last-event-id']?.toString() ?? query.cursor;
  return from === undefined ? { position: await inbox.latest(), open: [] } : parseCursor(from);
}

function matches({ pluginId, event }: Call['query'], record: DeliveryRecord): boolean {
  return (pluginId ?? record.pluginId) === record.pluginId && (event ?? record.event) === record.event;
}

async function streamed(record: DeliveryRecord, { resign }: WebhookStreamServices, { query }: Call) {
  const signature = query.sign === undefined ? {} : { signature: await resign(record) };
  return { ...viewOf(record), headers: JSON.parse(record.headers), ...textOf(record.body), ...signature };
}

interface Told {
  comment?: string;
  id?: TailCursor;
  event: string;
  /** One line. */
  data: string;
}

/** Its reader's backpressure is ours: nothing is read ahead of what it takes. Rejects once the reader has left. */
function write(stream: ReplyStream, { comment, id, event, data }: Told): Promise<void> {
  const lines = [
    ...(comment === undefined ? [] : [`: ${comment}`]),
    ...(id === undefined ? [] : [`id: ${formatCursor(id)}`]),
    `event: ${event}`,
    `data: ${data}`,
  ];
  return stream.write(Buffer.from(`${lines.join('\n')}\n\n`));
}
