import type { FastifyRequest } from 'fastify';
import {
  type Caller,
  HEADERS,
  LIMITS,
  listWebhooks,
  NamespaceId,
  provisionWebhook,
  revokeWebhook,
  revokeWebhookInstance,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import { minutes } from '../../../kit/duration.ts';
import { PlatformError } from '../../../kit/errors.ts';
import { createRateLimiter } from '../../../kit/rate-limiter.ts';
import type { Admins } from '../domain/admins.ts';
import type { WebhookAdmin } from '../domain/webhook-admin.ts';

export interface WebhookAdminServices {
  webhookAdmin: WebhookAdmin;
  admins: Admins;
}

/** @spec Webhook admin API; Limits: 10 provisions and revocations a minute together, 60 lists */
export function webhookAdminRoutes(http: Http, { webhookAdmin, admins }: WebhookAdminServices): void {
  const changes = {
    auth: 'caller',
    perMinute: {
      limiter: createRateLimiter(http.kit.clock, minutes(1)),
      limit: LIMITS.webhookProvisionsPerMinute,
    },
  } as const;
  const scopeOf = ({ request, caller }: { request: FastifyRequest; caller: Caller }): string =>
    admins.scope(caller, namedNamespace(request));

  mount(http, provisionWebhook, changes, (call) => {
    const { instanceId = '', namespaceInUrl = false, secret: given, ...target } = call.body;
    const { id: requestId, traceId } = call.request;
    const key = { ...target, instanceId, namespaceId: scopeOf(call) };
    return webhookAdmin.provision(key, { namespaceInUrl, given, requestId, traceId });
  });
  mount(http, listWebhooks, { auth: 'caller', perMinute: LIMITS.webhookListsPerMinute }, async (call) => ({
    items: await webhookAdmin.list(scopeOf(call)),
    nextCursor: null,
  }));
  mount(http, revokeWebhook, changes, (call) =>
    webhookAdmin.revoke({ ...call.params, instanceId: '', namespaceId: scopeOf(call) }),
  );
  mount(http, revokeWebhookInstance, changes, (call) =>
    webhookAdmin.revoke({ ...call.params, namespaceId: scopeOf(call) }),
  );
}

/** What an admin names to act on another namespace. @spec docs/decisions.md "Acting on another namespace" */
function namedNamespace({ headers }: FastifyRequest): string | undefined {
  const sent = headers[HEADERS.namespace];
  if (sent === undefined) return undefined;
  const named = NamespaceId.safeParse(sent);
  if (named.success) return named.data;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `The ${HEADERS.namespace} header ${named.error.issues[0]?.message}.`,
  );
}
