import { type Caller, exchangeToken, refreshToken, whoAmI } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import { roleIn } from '../domain/access/access-rights.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { AttemptLimits } from '../domain/identity/attempt-limits.ts';
import type { Authenticator } from '../domain/identity/authenticator.ts';
import type { TokenExchange } from '../domain/identity/token-exchange.ts';
import { subjectOf } from './subject.ts';

export interface AuthRoutesServices {
  exchange: TokenExchange;
  attempts: AttemptLimits;
  authenticator: Authenticator;
  admins: Admins;
}

/** @spec Gateway: authentication and hosts */
export function authRoutes(
  http: Http,
  { exchange, attempts, authenticator, admins }: AuthRoutesServices,
): void {
  mount(http, exchangeToken, { auth: 'open' }, ({ body, request, reply }) => {
    reply.header('cache-control', 'no-store');
    return attempts.guard(request.ip, body.clientId, () => exchange.exchange(body, subjectOf(request)));
  });
  mount(http, refreshToken, { auth: 'open' }, ({ body, request, reply }) => {
    reply.header('cache-control', 'no-store');
    return attempts.guard(request.ip, null, () => exchange.refresh(body.refreshToken, subjectOf(request)));
  });
  mount(http, whoAmI, { auth: 'caller' }, async ({ request }) => {
    const caller = await authenticator.authenticate(subjectOf(request));
    const { hostId, namespaceId, kind, expiresAt } = caller;
    const admin = admins.is(caller);
    const shown = Number.isFinite(expiresAt) ? expiresAt : null;
    return { hostId, namespaceId, kind, admin, expiresAt: shown, ...restrictionsOf(caller) };
  });
}

/** Returns the role and the scopes of a caller. Both are absent for a caller without restrictions. */
function restrictionsOf({ access, namespaceId }: Caller) {
  return {
    ...(access?.roles ? { role: roleIn(access.roles, namespaceId) } : {}),
    ...(access?.scopes ? { scopes: [...access.scopes] } : {}),
  };
}
