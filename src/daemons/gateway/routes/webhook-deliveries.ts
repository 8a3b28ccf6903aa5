import type { FastifyReply } from 'fastify';
import {
  getDelivery,
  listDeliveries,
  replayDeliveries,
  replayDelivery,
  sendSample,
  streamDeliveries,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { DeliveryRecord, WebhookInbox } from '../../../store/ports/index.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { WebhookDeliveries } from '../domain/webhooks/deliveries.ts';
import { textOf, viewOf } from '../domain/webhooks/delivery-view.ts';
import type { Resign } from '../domain/webhooks/resigning.ts';
import type { WebhookSamples } from '../domain/webhooks/samples.ts';
import { formatCursor, parseCursor, readTail, type TailCursor } from '../domain/webhooks/tail.ts';
import { scopeOf } from './webhook-scope.ts';

export interface WebhookDeliveriesServices {
  deliveries: WebhookDeliveries;
  samples: WebhookSamples;
  tailedInbox: WebhookInbox;
  resign: Resign;
  admins: Admins;
}

/** Bodies of samples are at most what a webhook may take. */
const SAMPLE_BYTES = 64 * 1024 * 1024;
const LISTS_PER_MINUTE = 600;
const SAMPLES_PER_MINUTE = 60;

/** @spec docs/webhooks.md "Records" */
export function webhookDeliveriesRoutes(http: Http, services: WebhookDeliveriesServices): void {
  const { deliveries, samples, tailedInbox, resign, admins } = services;
  const reading = { auth: 'caller', perMinute: LISTS_PER_MINUTE } as const;
  const changing = { auth: 'caller' } as const;

  mount(http, listDeliveries, reading, (call) => {
    const { status, ...query } = call.query;
    return deliveries.list(scopeOf(admins, call), { ...query, status: status && [status] });
  });
  mount(http, getDelivery, reading, (call) => deliveries.get(scopeOf(admins, call), call.params.webhookId));
  mount(http, replayDelivery, changing, (call) =>
    deliveries.replay(scopeOf(admins, call), call.params.webhookId, idsOf(call.request)),
  );
  mount(http, replayDeliveries, changing, (call) =>
    deliveries.replayMany(scopeOf(admins, call), call.body, idsOf(call.request)),
  );
  const sending = { auth: 'caller', perMinute: SAMPLES_PER_MINUTE, bodyLimitBytes: SAMPLE_BYTES } as const;
  mount(http, sendSample, sending, (call) => {
    const { instanceId = '', data, headers = {}, ...target } = call.body;
    const key = { ...target, instanceId, namespaceId: scopeOf(admins, call) };
    return samples.send({ ...key, data, headers, source: call.request.ip, ...idsOf(call.request) });
  });
  const streams = new Set<() => void>();
  // An open stream would keep a gateway that stops from stopping; its reader comes back with its cursor.
  http.addHook('preClose', async () => {
    for (const end of streams) end();
  });
  mount(http, streamDeliveries, changing, async (call) => {
    const { pluginId, event, cursor, sign } = call.query;
    const from = call.request.headers['last-event-id']?.toString() ?? cursor;
    const start = from === undefined ? { position: await tailedInbox.latest(), open: [] } : parseCursor(from);
    await stream(call.reply, streams, {
      inbox: tailedInbox,
      namespaceId: scopeOf(admins, call),
      start,
      pluginId,
      event,
      resign: sign === undefined ? undefined : resign,
    });
  });
}

const idsOf = ({ id: requestId, traceId }: { id: string; traceId: string }) => ({ requestId, traceId });

/** How soon a stream sees what any process of the gateway wrote. */
const LOOK_EVERY_MS = 200;
const PING_EVERY_MS = 10_000;

interface StreamSource {
  inbox: WebhookInbox;
  namespaceId: string;
  start: TailCursor;
  pluginId: string | undefined;
  event: string | undefined;
  resign: Resign | undefined;
}

async function streamed(record: DeliveryRecord, resign: Resign | undefined) {
  const signature = resign ? { signature: await resign(record) } : {};
  return { ...viewOf(record), headers: JSON.parse(record.headers), ...textOf(record.body), ...signature };
}

/** Writes events until the reader goes away. Its backpressure is ours: nothing is read ahead of what it takes. */
async function stream(reply: FastifyReply, streams: Set<() => void>, source: StreamSource): Promise<void> {
  const { inbox, namespaceId } = source;
  reply.hijack();
  const { raw } = reply;
  let closed = false;
  let wake = (): void => {};
  const end = (): void => {
    closed = true;
    wake();
    raw.end();
  };
  streams.add(end);
  raw.on('close', () => {
    streams.delete(end);
    end();
  });
  raw.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  });
  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const send = async (text: string): Promise<void> => {
    if (!raw.write(text) && !closed)
      await new Promise<void>((resolve) => {
        raw.once('drain', resolve);
        raw.once('close', resolve);
      });
  };
  let cursor = source.start;
  let quietMs = 0;
  await send(`: from ${formatCursor(cursor)}\nid: ${formatCursor(cursor)}\nevent: hello\ndata: {}\n\n`);
  while (!closed) {
    const events = await readTail(inbox, namespaceId, cursor);
    for (const { kind, record, cursor: reached } of events) {
      cursor = reached;
      const wanted =
        (source.pluginId ?? record.pluginId) === record.pluginId &&
        (source.event ?? record.event) === record.event;
      const data = wanted ? JSON.stringify(await streamed(record, source.resign)) : '{}';
      await send(`id: ${formatCursor(cursor)}\nevent: ${wanted ? kind : 'passed'}\ndata: ${data}\n\n`);
    }
    if (events.length > 0) {
      quietMs = 0;
      continue;
    }
    await pause(LOOK_EVERY_MS);
    quietMs += LOOK_EVERY_MS;
    if (quietMs % PING_EVERY_MS === 0) await send('event: ping\ndata: {}\n\n');
  }
}
