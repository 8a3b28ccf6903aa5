import {
  getDelivery,
  listDeliveries,
  replayDeliveries,
  replayDelivery,
  sendSample,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { WebhookDeliveries } from '../domain/webhooks/deliveries.ts';
import type { WebhookSamples } from '../domain/webhooks/samples.ts';
import { scopeOf } from './webhook-scope.ts';

export interface WebhookDeliveriesServices {
  deliveries: WebhookDeliveries;
  samples: WebhookSamples;
  admins: Admins;
}

/** Bodies of samples are at most what a webhook may take. */
const SAMPLE_BYTES = 64 * 1024 * 1024;
const LISTS_PER_MINUTE = 600;
const SAMPLES_PER_MINUTE = 60;

/** @spec docs/webhooks.md "Records" */
export function webhookDeliveriesRoutes(http: Http, services: WebhookDeliveriesServices): void {
  const { deliveries, samples, admins } = services;
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
}

const idsOf = ({ id: requestId, traceId }: { id: string; traceId: string }) => ({ requestId, traceId });
