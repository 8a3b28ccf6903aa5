import {
  expectSecret,
  getWebhookProvider,
  getWebhookRotation,
  LIMITS,
  listWebhookProviders,
  listWebhooks,
  pauseWebhook,
  provisionWebhook,
  resumeWebhook,
  revokeWebhook,
  revokeWebhookInstance,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import { minutes } from '../../../kit/time/duration.ts';
import {
  PROVIDERS,
  providerDetails,
  providerOf,
  providerSummary,
} from '../../../webhooks/providers/index.ts';
import type { WebhookAdmin } from '../domain/webhooks/admin/admin.ts';
import type { WebhookListing } from '../domain/webhooks/admin/listing.ts';
import type { WebhookRotations } from '../domain/webhooks/admin/rotation.ts';

export interface WebhookAdminServices {
  webhookAdmin: WebhookAdmin;
  webhookListing: WebhookListing;
  webhookRotations: WebhookRotations;
}

/** @spec Webhook admin API; Limits: 10 provisions and revocations a minute together, 60 lists */
export function webhookAdminRoutes(http: Http, services: WebhookAdminServices): void {
  const { webhookAdmin, webhookListing, webhookRotations } = services;
  const changes = {
    auth: 'caller',
    // Calls are counted per target namespace, so that an operator has a separate limit for each tenant.
    perMinute: {
      limiter: http.kit.createLimiter('webhook changes', { windowMs: minutes(1) }),
      limit: LIMITS.webhookProvisionsPerMinute,
    },
  } as const;

  mount(http, provisionWebhook, changes, (call) => {
    const { instanceId = '', namespaceInUrl, secret: given, generate, ...target } = call.body;
    const { id: requestId, traceId } = call.request;
    call.reply.header('cache-control', 'no-store');
    const key = { ...target, instanceId, namespaceId: call.caller.namespaceId };
    return webhookAdmin.provision(key, { namespaceInUrl, given, generate, requestId, traceId });
  });
  mount(http, expectSecret, changes, (call) => {
    const { instanceId = '', minutes: open, ...target } = call.body;
    const key = { ...target, instanceId, namespaceId: call.caller.namespaceId };
    return webhookAdmin.expectSecret(key, minutes(open));
  });
  mount(http, listWebhooks, { auth: 'caller', perMinute: LIMITS.webhookListsPerMinute }, async (call) => ({
    items: await webhookListing.list(call.caller.namespaceId),
    nextCursor: null,
  }));
  mount(http, getWebhookRotation, { auth: 'caller', perMinute: LIMITS.webhookListsPerMinute }, (call) => {
    const { instanceId = '', ...target } = call.query;
    return webhookRotations.report({ ...target, instanceId, namespaceId: call.caller.namespaceId });
  });
  mount(
    http,
    listWebhookProviders,
    { auth: 'caller', perMinute: LIMITS.webhookListsPerMinute },
    async () => ({
      items: PROVIDERS.map(providerSummary),
      nextCursor: null,
    }),
  );
  mount(http, getWebhookProvider, { auth: 'caller', perMinute: LIMITS.webhookListsPerMinute }, async (call) =>
    providerDetails(providerOf(call.params.id)),
  );
  mount(http, revokeWebhook, changes, (call) =>
    webhookAdmin.revoke({ ...call.params, instanceId: '', namespaceId: call.caller.namespaceId }),
  );
  mount(http, revokeWebhookInstance, changes, (call) =>
    webhookAdmin.revoke({ ...call.params, namespaceId: call.caller.namespaceId }),
  );
  mount(http, pauseWebhook, changes, (call) => {
    const { instanceId = '', ...target } = call.body;
    return webhookAdmin.pause({ ...target, instanceId, namespaceId: call.caller.namespaceId });
  });
  mount(http, resumeWebhook, changes, (call) => {
    const { instanceId = '', ...target } = call.body;
    return webhookAdmin.resume({ ...target, instanceId, namespaceId: call.caller.namespaceId });
  });
}
