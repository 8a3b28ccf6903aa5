import { announceScheduler, noticeDeliveries, runDeliveryAttempt } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { RequestedAttempts } from '../domain/webhooks/dispatch/requested-attempts.ts';
import type { WebhookDispatcher } from '../domain/webhooks/dispatch/webhook-dispatcher.ts';
import { requireGateway } from './service-caller.ts';

export interface DeliveryAttemptsServices {
  requestedAttempts: Pick<RequestedAttempts, 'run' | 'follow'>;
  dispatcher: Pick<WebhookDispatcher, 'pull'>;
  internalSecret: string;
}

/** Runs attempts of deliveries for other gateways of the store. */
export function deliveryAttemptsRoutes(
  http: Http,
  { requestedAttempts, dispatcher, internalSecret }: DeliveryAttemptsServices,
): void {
  // These routes are registered in a separate scope, so that the hook applies only to them.
  http.register((own, _options, done) => {
    own.addHook('onRequest', async (request) => requireGateway(request, internalSecret));
    mount(own, runDeliveryAttempt, { auth: 'open' }, async ({ body }) => {
      const end = await requestedAttempts.run(body);
      return {
        isRefused: end === undefined,
        isUnread: end?.isUnread ?? false,
        nextAttemptAt: end?.nextAttemptAt ?? null,
      };
    });
    mount(own, announceScheduler, { auth: 'open' }, async ({ body }) => ({
      running: await requestedAttempts.follow(body.scheduler),
    }));
    mount(own, noticeDeliveries, { auth: 'open' }, async () => {
      dispatcher.pull();
      return { noticed: true as const };
    });
    done();
  });
}
