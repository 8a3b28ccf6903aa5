import type { FastifyRequest } from 'fastify';
import {
  type Caller,
  LIMITS,
  listWebhooks,
  pauseWebhook,
  provisionWebhook,
  resumeWebhook,
  revokeWebhook,
  revokeWebhookInstance,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import { minutes } from '../../../kit/duration.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { WebhookAdmin } from '../domain/webhooks/admin.ts';
import { scopeOf } from './webhook-scope.ts';

export interface WebhookAdminServices {
  webhookAdmin: WebhookAdmin;
  admins: Admins;
}

/** @spec Webhook admin API; Limits: 10 provisions and revocations a minute together, 60 lists */
export function webhookAdminRoutes(http: Http, { webhookAdmin, admins }: WebhookAdminServices): void {
  const changes = {
    auth: 'caller',
    perMinute: {
      limiter: http.kit.createLimiter('webhook changes', { windowMs: minutes(1) }),
      limit: LIMITS.webhookProvisionsPerMinute,
      // Of the namespace acted on: a tenant must not use up what the operator needs elsewhere.
      keyOf: (request: FastifyRequest, caller: Caller) => scopeOf(admins, { request, caller }),
    },
  } as const;

  mount(http, provisionWebhook, changes, (call) => {
    const { instanceId = '', namespaceInUrl, secret: given, ...target } = call.body;
    const { id: requestId, traceId } = call.request;
    call.reply.header('cache-control', 'no-store');
    const key = { ...target, instanceId, namespaceId: scopeOf(admins, call) };
    return webhookAdmin.provision(key, { namespaceInUrl, given, requestId, traceId });
  });
  mount(http, listWebhooks, { auth: 'caller', perMinute: LIMITS.webhookListsPerMinute }, async (call) => ({
    items: await webhookAdmin.list(scopeOf(admins, call)),
    nextCursor: null,
  }));
  mount(http, revokeWebhook, changes, (call) =>
    webhookAdmin.revoke({ ...call.params, instanceId: '', namespaceId: scopeOf(admins, call) }),
  );
  mount(http, revokeWebhookInstance, changes, (call) =>
    webhookAdmin.revoke({ ...call.params, namespaceId: scopeOf(admins, call) }),
  );
  mount(http, pauseWebhook, changes, (call) => {
    const { instanceId = '', ...target } = call.body;
    return webhookAdmin.pause({ ...target, instanceId, namespaceId: scopeOf(admins, call) });
  });
  mount(http, resumeWebhook, changes, (call) => {
    const { instanceId = '', ...target } = call.body;
    return webhookAdmin.resume({ ...target, instanceId, namespaceId: scopeOf(admins, call) });
  });
}
