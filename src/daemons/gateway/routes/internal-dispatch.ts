import type { FastifyReply, FastifyRequest } from 'fastify';
import { HEADERS, internalDispatch } from '../../../contracts/index.ts';
import {
  abortOnDisconnect,
  CLIENT_CLOSED_REQUEST,
  createReplyStream,
  type Http,
  mount,
} from '../../../http/index.ts';
import { messageOf, PlatformError, toPlatformError } from '../../../kit/errors/errors.ts';
import { safeEqual } from '../../../kit/security/keys.ts';
import type { StreamSink } from '../../../plugins/index.ts';
import { type ContainerCredentials, executionOf } from '../domain/hosts/container-credentials.ts';
import type { Dispatch, Dispatcher, NamedRequest } from '../domain/hosts/dispatch.ts';
import type { Authenticator, Principal } from '../domain/identity/authenticator.ts';
import { authorizationOf } from '../domain/identity/bearer.ts';
import { isService, reportRefusal } from './service-caller.ts';
import { subjectOf } from './subject.ts';

export interface InternalDispatchServices {
  dispatch: Dispatch;
  credentials: ContainerCredentials;
  authenticator: Authenticator;
  internalSecret: string;
}

/** Maximum size of a request body. This size is large enough for the largest webhook input, escaped as JSON. */
const BODY_LIMIT_BYTES = 64 * 1024 * 1024;

/**
 * Runs plugin code for other services and for containers. A Bearer token alone is not sufficient.
 * @spec Authentication 6
 */
export function internalDispatchRoutes(http: Http, services: InternalDispatchServices): void {
  const dispatchers = new WeakMap<FastifyRequest, Dispatcher>();
  // A separate Fastify scope limits the hook to this route.
  http.register((own, _options, done) => {
    // Authentication precedes reading the body, so that unauthenticated clients cannot make the gateway parse 64 MB.
    own.addHook('onRequest', async (request) => {
      dispatchers.set(request, await admit(request, services));
    });
    mount(
      own,
      internalDispatch,
      { auth: 'open', bodyLimitBytes: BODY_LIMIT_BYTES },
      ({ body, request, reply }) => {
        const { id: requestId, traceId, spanId } = request;
        const named = {
          ...body,
          executionId: body.executionId ?? http.kit.random.uuid(),
          requestId: body.requestId ?? requestId,
          traceId: body.traceId ?? traceId,
          spanId,
        };
        return run(named, dispatchers.get(request)!, services, request, reply);
      },
    );
    done();
  });
}

async function run(
  named: NamedRequest,
  by: Dispatcher,
  { dispatch }: InternalDispatchServices,
  request: FastifyRequest,
  reply: FastifyReply,
) {
  const { kit } = request.server;
  const { executionId } = named;
  const { signal } = abortOnDisconnect(reply);
  const answer = createReplyStream(reply);
  const stream: StreamSink = {
    start: (contentType) => answer.start({ 'content-type': contentType, [HEADERS.stream]: executionId }),
    write: answer.write,
  };
  try {
    const result = await dispatch.run(named, by, {
      signal,
      isOwnerCall: request.headers[HEADERS.ownerCall] !== undefined,
      ...(named.streams ? { stream } : {}),
      ...(named.tellsBegun ? { onBegun: () => reply.raw.writeProcessing() } : {}),
    });
    if (answer.started) {
      answer.end();
      kit.account(request, 200);
    }
    return { executionId, result };
  } catch (error) {
    if (!answer.started) throw error;
    // The status was already sent, so the client detects the failure only by the incomplete body.
    answer.cut();
    kit.account(request, signal.aborted ? CLIENT_CLOSED_REQUEST : 500);
    if (!signal.aborted)
      kit.logger.warn(`The stream of execution ${executionId} broke off: ${messageOf(error)}`, {
        requestId: named.requestId,
        traceId: named.traceId,
        pluginId: named.plugin.id,
        error,
      });
    return { executionId, result: { exitCode: 1 } };
  }
}

/**
 * Authenticates the caller. Services send the platform's internal secret. Containers send their token and the secret of
 * their execution, and can make calls only within the token's namespace.
 */
async function admit(request: FastifyRequest, services: InternalDispatchServices): Promise<Dispatcher> {
  const { internalSecret, credentials, authenticator } = services;
  const shown = request.headers[HEADERS.internalSecret];
  if (typeof shown !== 'string' || shown === '') throw refuse(request, 'MISSING_SECRET');
  const isOurs = safeEqual(shown, internalSecret);
  const container = await containerOf(request, authenticator);
  if (container) {
    const isItsOwn = credentials.isOwn(shown, executionOf(container));
    if (isOurs || isItsOwn) return { namespaceId: container.namespaceId, records: false };
  } else if (isOurs) return { namespaceId: null, records: isService(request, internalSecret) };
  throw refuse(request, 'WRONG_SECRET');
}

/**
 * Returns the container whose token was sent. Returns undefined without a token, or for the valid token of another kind
 * of caller. Throws FORBIDDEN for an invalid token.
 */
async function containerOf(
  request: FastifyRequest,
  authenticator: Authenticator,
): Promise<Principal | undefined> {
  if (authorizationOf(request.raw.rawHeaders) === undefined) return undefined;
  try {
    const caller = await authenticator.authenticate(subjectOf(request));
    return caller.kind === 'container' ? caller : undefined;
  } catch (error) {
    if (toPlatformError(error).code === 'SERVICE_UNAVAILABLE') throw error;
    throw refuse(request, 'INVALID_TOKEN');
  }
}

function refuse(request: FastifyRequest, reasonCode: string): PlatformError {
  reportRefusal(request, { reasonCode, message: `An internal dispatch from ${request.ip} was refused` });
  return new PlatformError(
    'FORBIDDEN',
    'Internal dispatch needs the X-Internal-Secret of this platform (GATEWAY_INTERNAL_SECRET); a Bearer token is not enough.',
  );
}
