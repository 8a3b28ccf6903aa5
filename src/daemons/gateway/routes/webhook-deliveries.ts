import {
  countDeliveries,
  getDelivery,
  listDeliveries,
  replayDeliveries,
  replayDelivery,
  sendSample,
  trustDelivery,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { WebhookDeliveries } from '../domain/webhooks/admin/deliveries.ts';
import type { Replays } from '../domain/webhooks/admin/replays.ts';
import type { WebhookSamples } from '../domain/webhooks/admin/samples.ts';
import type { RefusedReplays } from '../domain/webhooks/refused/refused-replays.ts';

export interface WebhookDeliveriesServices {
  deliveries: WebhookDeliveries;
  replays: Replays;
  refusedReplays: RefusedReplays;
  samples: WebhookSamples;
}

/** Maximum size of a sample, equal to the largest permitted `maxBodyBytes` of a webhook. */
const SAMPLE_BYTES = 64 * 1024 * 1024;
const LISTS_PER_MINUTE = 600;
const SAMPLES_PER_MINUTE = 60;

/** @spec docs/webhooks.md "Records" */
export function webhookDeliveriesRoutes(http: Http, services: WebhookDeliveriesServices): void {
  const { deliveries, replays, refusedReplays, samples } = services;
  const reading = { auth: 'caller', perMinute: LISTS_PER_MINUTE } as const;
  const changing = { auth: 'caller' } as const;

  mount(http, listDeliveries, reading, (call) => {
    const { status, ...query } = call.query;
    return deliveries.list(call.caller.namespaceId, { ...query, status: status && [status].flat() });
  });
  mount(http, countDeliveries, reading, (call) =>
    deliveries.countByHour(call.caller.namespaceId, call.query),
  );
  mount(http, getDelivery, reading, (call) => deliveries.get(call.caller.namespaceId, call.params.webhookId));
  mount(http, replayDelivery, changing, (call) =>
    replays.replay(call.caller.namespaceId, call.params.webhookId, idsOf(call.request)),
  );
  mount(http, trustDelivery, changing, ({ caller, params, request }) =>
    refusedReplays.replay(caller.namespaceId, params.webhookId, idsOf(request), { trust: true }),
  );
  mount(http, replayDeliveries, changing, ({ body, caller, request }) =>
    replays.replayMany(
      caller.namespaceId,
      { ...body, status: [body.status ?? 'failed'].flat() },
      idsOf(request),
    ),
  );
  const sending = { auth: 'caller', perMinute: SAMPLES_PER_MINUTE, bodyLimitBytes: SAMPLE_BYTES } as const;
  mount(http, sendSample, sending, (call) => {
    const { instanceId = '', data, bytes, contentType, headers = {}, ...target } = call.body;
    const key = { ...target, instanceId, namespaceId: call.caller.namespaceId };
    const body = bytes === undefined ? undefined : Buffer.from(bytes, 'base64');
    return samples.send({
      ...key,
      data,
      body,
      contentType,
      headers,
      source: call.request.ip,
      ...idsOf(call.request),
    });
  });
}

const idsOf = ({ id: requestId, traceId }: { id: string; traceId: string }) => ({ requestId, traceId });
