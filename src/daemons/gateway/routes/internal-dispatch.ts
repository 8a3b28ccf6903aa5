import type { FastifyReply, FastifyRequest } from 'fastify';
import { HEADERS, internalDispatch } from '../../../contracts/index.ts';
import {
  abortOnDisconnect,
  CLIENT_CLOSED_REQUEST,
  createReplyStream,
  type Http,
  mount,
} from '../../../http/index.ts';
import { messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import { safeEqual, serviceKey } from '../../../kit/security/keys.ts';
import type { StreamSink } from '../../../plugins/index.ts';
import { type ContainerCredentials, executionOf } from '../domain/hosts/container-credentials.ts';
import type { Dispatch, Dispatcher, NamedRequest } from '../domain/hosts/dispatch.ts';
import type { Authenticator, Principal } from '../domain/identity/authenticator.ts';
import { authorizationOf } from '../domain/identity/bearer.ts';
import { subjectOf } from './subject.ts';

export interface InternalDispatchServices {
  dispatch: Dispatch;
  credentials: ContainerCredentials;
  authenticator: Authenticator;
  internalSecret: string;
}

/** Room for the largest input of a webhook, escaped as JSON. */
const BODY_LIMIT_BYTES = 64 * 1024 * 1024;

/** Executions for other daemons and for containers; never by a Bearer token alone. @spec Authentication 6 */
export function internalDispatchRoutes(http: Http, services: InternalDispatchServices): void {
  const dispatchers = new WeakMap<FastifyRequest, Dispatcher>();
  // A scope of its own: the hook is for this route alone.
  http.register((own, _options, done) => {
    // Before the body is read: a stranger must not make us parse 64 MB.
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

/** Answers with the result, or with the stream that the handler returned. */
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
    // Its status is out: only the missing end tells the caller that something failed.
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
 * A daemon shows the internal secret; a container the one of its execution and its token. A container's token beside
 * our own secret binds the call to its namespace all the same.
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

/** The internal secret alone is also held by callers outside; the service key is derived from it for services. */
function isService(request: FastifyRequest, internalSecret: string): boolean {
  const shown = request.headers[HEADERS.serviceKey];
  return typeof shown === 'string' && safeEqual(shown, serviceKey(internalSecret));
}

/** The container whose token the call carries; refuses one that is not in force. */
async function containerOf(
  request: FastifyRequest,
  authenticator: Authenticator,
): Promise<Principal | undefined> {
  if (authorizationOf(request.raw.rawHeaders) === undefined) return undefined;
  try {
    const caller = await authenticator.authenticate(subjectOf(request));
    return caller.kind === 'container' ? caller : undefined;
  } catch {
    throw refuse(request, 'INVALID_TOKEN');
  }
}

function refuse(request: FastifyRequest, reasonCode: string): PlatformError {
  request.server.kit.logger.diagnostic(
    {
      domain: 'auth',
      event: 'auth.failed',
      level: 'warn',
      reasonCode,
      message: `An internal dispatch from ${request.ip} was refused`,
      outcome: 'refused',
      evidence: { ip: request.ip },
    },
    { requestId: request.id, traceId: request.traceId },
  );
  return new PlatformError(
    'FORBIDDEN',
    'Internal dispatch takes the X-Internal-Secret of this platform (GATEWAY_INTERNAL_SECRET); a Bearer token does not do.',
  );
}
