import type { FastifyReply, FastifyRequest, HTTPMethods } from 'fastify';
import { type Http, pathOf, sendRawError } from '../../../http/index.ts';
import { PlatformError, toPlatformError } from '../../../kit/errors.ts';
import type { Authenticator, Principal } from '../domain/authenticator.ts';
import type { Forward } from '../proxy/forward.ts';
import { pathFault } from '../proxy/request-path.ts';
import type { Upstream } from '../proxy/upstreams.ts';
import { subjectOf } from './subject.ts';

/** TRACE would show a page what headers we add; CONNECT is no request to an upstream. */
const METHODS: HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

export interface ProxyRoutesServices {
  authenticator: Authenticator;
  upstreams: readonly Upstream[];
  forward: Forward;
}

/**
 * Everything at or below an upstream's prefixes that the gateway does not serve itself. The reply is taken from Fastify
 * before the body is read, so that bodies stream through unparsed. @spec Authentication 1: no routing without it
 */
export function proxyRoutes(http: Http, { authenticator, upstreams, forward }: ProxyRoutesServices): void {
  for (const upstream of upstreams) {
    const onRequest = takeOver(authenticator, (request, reply, caller) =>
      forward(request, reply, upstream, caller),
    );
    for (const prefix of upstream.prefixes) {
      for (const url of [prefix || '/', `${prefix}/*`]) {
        http.route({ method: METHODS, url, exposeHeadRoute: false, onRequest, handler: unreachable });
      }
    }
  }
}

/** Route, authenticate, limit, forward: at once for a token seen before, so that the usual call waits for no promise. */
function takeOver(
  authenticator: Authenticator,
  forward: (request: FastifyRequest, reply: FastifyReply, caller: Principal) => void,
) {
  return (request: FastifyRequest, reply: FastifyReply): void => {
    reply.hijack();
    const proceed = (caller: Principal): void => {
      request.caller = caller;
      forward(request, reply, caller);
    };
    const refuse = (error: unknown): void => sendRawError(reply.raw, toPlatformError(error), request.id);
    try {
      requireForwardable(request);
      const caller = authenticator.authenticate(subjectOf(request));
      if (caller instanceof Promise) caller.then(proceed).catch(refuse);
      else proceed(caller);
    } catch (error) {
      refuse(error);
    }
  };
}

function requireForwardable(request: FastifyRequest): void {
  const fault = pathFault(pathOf(request.raw.url!));
  if (fault) throw new PlatformError('VALIDATION_ERROR', `${fault} Send the path in its plain form.`);
}

function unreachable(): never {
  throw new Error('The proxy answers before its handler.');
}
