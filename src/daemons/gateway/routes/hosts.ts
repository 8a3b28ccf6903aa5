import type { FastifyRequest } from 'fastify';
import {
  type Caller,
  getHost,
  inviteHost,
  listHosts,
  registerHost,
  revokeHost,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import { nativeRule } from '../domain/access/access-rules.ts';
import { requireAccess } from '../domain/access/require-access.ts';
import type { Enrolments } from '../domain/hosts/enrolments.ts';
import type { Hosts } from '../domain/hosts/hosts.ts';
import { actingNamespace } from '../domain/identity/acting-namespace.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { AttemptLimits } from '../domain/identity/attempt-limits.ts';
import type { Authenticator } from '../domain/identity/authenticator.ts';
import { authorizationOf, bearerToken } from '../domain/identity/bearer.ts';
import { subjectOf } from './subject.ts';

export interface HostRoutesServices {
  hosts: Hosts;
  enrolments: Enrolments;
  authenticator: Authenticator;
  admins: Admins;
  attempts: AttemptLimits;
}

/** @spec Gateway: authentication and hosts; Host agent registration */
export function hostRoutes(http: Http, services: HostRoutesServices): void {
  const { hosts, enrolments, admins, attempts } = services;
  mount(http, registerHost, { auth: 'open' }, async ({ body, request, reply }) => {
    request.caller = await attempts.guard(request.ip, null, () => registrantOf(request, services));
    reply.header('cache-control', 'no-store');
    return hosts.register(request.caller.namespaceId, body);
  });
  mount(http, inviteHost, { auth: 'caller' }, ({ body, caller, reply }) => {
    admins.require(caller);
    reply.header('cache-control', 'no-store');
    return enrolments.invite(admins.scope(caller, body.namespaceId));
  });
  mount(http, listHosts, { auth: 'caller' }, ({ query, caller }) => hosts.list(caller, query));
  mount(http, getHost, { auth: 'caller' }, ({ params, caller }) => hosts.get(caller, params.hostId));
  mount(http, revokeHost, { auth: 'caller' }, async ({ params, caller }) => {
    await hosts.revoke(caller, params.hostId);
    return { revoked: true as const };
  });
}

/** Host id of callers with an enrolment token, in the audit log. */
const ENROLMENT = 'enrolment';

/**
 * Returns the caller with the namespace of the enrolment token. Without an enrolment token, the caller must be an
 * administrator of the namespace.
 */
async function registrantOf(request: FastifyRequest, services: HostRoutesServices): Promise<Caller> {
  const { enrolments, authenticator, admins } = services;
  const header = authorizationOf(request.raw.rawHeaders);
  const token = typeof header === 'string' ? bearerToken(header) : undefined;
  if (token && enrolments.looksLikeOne(token)) {
    const namespaceId = await enrolments.redeem(token);
    if (namespaceId !== undefined) return { hostId: ENROLMENT, namespaceId };
  }
  const { method, path } = registerHost;
  const checked = { method, route: path, requestId: request.id, traceId: request.traceId };
  const caller: Caller = await authenticator.authenticate(subjectOf(request));
  admins.require(caller);
  const acting = actingNamespace(request.headers, caller, admins);
  requireAccess(acting, nativeRule(method, path), checked, request.server.kit.logger);
  return acting;
}
