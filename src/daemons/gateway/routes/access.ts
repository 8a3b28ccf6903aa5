import { grantRole, listRoles, revokeRole, setClientScopes } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { Roles } from '../domain/access/roles.ts';
import type { AuditLog } from '../domain/audit/audit-log.ts';
import { recordedWith } from './audit.ts';

/** @spec docs/gateway.md "Roles" */
export function accessRoutes(http: Http, { roles, audit }: { roles: Roles; audit: AuditLog }): void {
  mount(http, listRoles, { auth: 'caller' }, ({ query, caller }) => roles.list(caller, query));
  mount(http, grantRole, { auth: 'caller' }, ({ body, caller, request }) =>
    recordedWith(audit, request, (link) => roles.grant(caller, body, link)),
  );
  mount(http, revokeRole, { auth: 'caller' }, async ({ query, caller, request }) => {
    await recordedWith(audit, request, (link) => roles.revoke(caller, query, link));
    return { revoked: true as const };
  });
  mount(http, setClientScopes, { auth: 'caller' }, async ({ params, body, caller, request }) => {
    const { clientId } = params;
    const { scopes } = body;
    await recordedWith(audit, request, (link) => roles.setScopes(caller, { clientId, scopes }, link));
    return { clientId, scopes };
  });
}
