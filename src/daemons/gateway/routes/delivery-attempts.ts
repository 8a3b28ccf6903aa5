import type { FastifyRequest } from 'fastify';
import { announceScheduler, HEADERS, runDeliveryAttempt } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { safeEqual } from '../../../kit/security/keys.ts';
import type { AttemptsServer } from '../domain/webhooks/dispatch/relayed-attempts.ts';
import { isService } from './service-caller.ts';

export interface DeliveryAttemptsServices {
  attemptsServer: AttemptsServer;
  internalSecret: string;
}

/** Runs attempts of deliveries for other gateways of the store. */
export function deliveryAttemptsRoutes(
  http: Http,
  { attemptsServer, internalSecret }: DeliveryAttemptsServices,
): void {
  // Registered in a scope of its own, so that the hook applies only to these routes.
  http.register((own, _options, done) => {
    own.addHook('onRequest', async (request) => requireGateway(request, internalSecret));
    mount(own, runDeliveryAttempt, { auth: 'open' }, async ({ body }) => {
      const end = await attemptsServer.run(body);
      return {
        isRefused: end === undefined,
        isUnread: end?.isUnread ?? false,
        nextAttemptAt: end?.nextAttemptAt ?? null,
      };
    });
    mount(own, announceScheduler, { auth: 'open' }, async ({ body }) => ({
      running: await attemptsServer.follow(body.scheduler),
    }));
    done();
  });
}

/** Throws FORBIDDEN unless the caller has the internal secret and the service key, as only gateways and services do. */
function requireGateway(request: FastifyRequest, internalSecret: string): void {
  const shown = request.headers[HEADERS.internalSecret];
  const isOurs = typeof shown === 'string' && safeEqual(shown, internalSecret);
  if (isOurs && isService(request, internalSecret)) return;
  const isMissing = shown === undefined;
  request.server.kit.logger.diagnostic(
    {
      domain: 'auth',
      event: 'auth.failed',
      level: 'warn',
      reasonCode: isMissing ? 'MISSING_SECRET' : 'WRONG_SECRET',
      message: `A request from ${request.ip} to run deliveries was refused`,
      outcome: 'refused',
      evidence: { ip: request.ip },
    },
    { requestId: request.id, traceId: request.traceId },
  );
  throw new PlatformError(
    'FORBIDDEN',
    'Only the gateways of this platform may call this path; they send X-Internal-Secret and the service key.',
  );
}
