import type { FastifyRequest } from 'fastify';
import { listAudit, verifyAudit } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { AppendLink } from '../../../kit/security/audit-chain.ts';
import { nativeRule } from '../domain/access/access-rules.ts';
import type { AuditLog } from '../domain/audit/audit-log.ts';
import { jsonOf, type OpenCall, recordCall } from '../domain/audit/call-audit.ts';
import type { Admins } from '../domain/identity/admins.ts';

export interface AuditServices {
  audit: AuditLog;
  admins: Admins;
}

/** Requests whose entry was stored in the transaction of the change. */
const recorded = new WeakSet<FastifyRequest>();

/** Records changes by the gateway's own endpoints before their answers are sent. */
export function auditHook(http: Http, { audit }: Pick<AuditServices, 'audit'>): void {
  http.addHook('onSend', async (request, reply, payload) => {
    const { audit: action } = ruleOf(request);
    if (action === undefined || !request.caller || recorded.has(request)) return payload;
    recorded.add(request);
    const shown = typeof payload === 'string' ? jsonOf(payload) : null;
    const end = { status: reply.statusCode, body: request.body, reply: shown };
    await recordCall(audit, openCallOf(request), end, http.kit.logger);
    return payload;
  });
}

/**
 * Makes a change together with its audit entry. `change` must store the entry in the transaction of the change. If it
 * rejects, the hook records the call.
 */
export async function recordedWith<Result>(
  audit: AuditLog,
  request: FastifyRequest,
  change: (link: AppendLink) => Promise<Result>,
): Promise<Result> {
  const { params, query, ...call } = openCallOf(request);
  const parts = { params, query, body: request.body };
  const result = await change(audit.linkOf({ ...call, parts, status: 200, outcome: 'succeeded' }));
  recorded.add(request);
  return result;
}

/** @spec docs/security.md "Audit log" */
export function auditRoutes(http: Http, { audit, admins }: AuditServices): void {
  mount(http, listAudit, { auth: 'caller' }, ({ query, caller }) => {
    const { cursor, namespaceId, ...filter } = query;
    return audit.list({ ...filter, before: cursor, namespaceId: admins.listScope(caller, namespaceId) });
  });
  mount(http, verifyAudit, { auth: 'caller' }, ({ query, caller }) => {
    admins.require(caller);
    return audit.verify(query.expect);
  });
}

const ruleOf = ({ method, routeOptions }: FastifyRequest) => nativeRule(method, routeOptions.url);

function openCallOf(request: FastifyRequest): OpenCall {
  const { caller, params, query, url: path, id: requestId, traceId } = request;
  return { caller: caller!, rule: ruleOf(request), params, query, path, requestId, traceId };
}
