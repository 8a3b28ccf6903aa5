import {
  LIMITS,
  listWebhooks,
  provisionWebhook,
  revokeWebhook,
  revokeWebhookInstance,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import { minutes } from '../../../kit/duration.ts';
import { createRateLimiter } from '../../../kit/rate-limiter.ts';
import type { ActingNamespace } from '../domain/acting-namespace.ts';
import type { WebhookAdmin } from '../domain/webhook-admin.ts';

export interface WebhookAdminServices {
  webhookAdmin: WebhookAdmin;
  actingNamespace: ActingNamespace;
}

/** @spec Webhook admin API; Limits: 10 provisions and revocations a minute together, 60 lists */
export function webhookAdminRoutes(
  http: Http,
  { webhookAdmin, actingNamespace }: WebhookAdminServices,
): void {
  const changes = {
    auth: 'caller',
    perMinute: {
      limiter: createRateLimiter(http.kit.clock, minutes(1)),
      limit: LIMITS.webhookProvisionsPerMinute,
    },
  } as const;

  mount(http, provisionWebhook, changes, ({ body, caller, request }) =>
    webhookAdmin.provision(
      { ...body, instanceId: body.instanceId ?? '', namespaceId: actingNamespace(request, caller) },
      {
        namespaceInUrl: body.namespaceInUrl ?? false,
        requestId: request.id,
        traceId: request.traceId,
      },
    ),
  );
  mount(
    http,
    listWebhooks,
    { auth: 'caller', perMinute: LIMITS.webhookListsPerMinute },
    async ({ caller, request }) => ({
      items: await webhookAdmin.list(actingNamespace(request, caller)),
      nextCursor: null,
    }),
  );
  mount(http, revokeWebhook, changes, ({ params, caller, request }) =>
    webhookAdmin.revoke({ ...params, instanceId: '', namespaceId: actingNamespace(request, caller) }),
  );
  mount(http, revokeWebhookInstance, changes, ({ params, caller, request }) =>
    webhookAdmin.revoke({ ...params, namespaceId: actingNamespace(request, caller) }),
  );
}
