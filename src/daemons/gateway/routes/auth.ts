import { exchangeToken, refreshToken } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { AttemptLimits } from '../domain/attempt-limits.ts';
import type { TokenExchange } from '../domain/token-exchange.ts';

export interface AuthRoutesServices {
  exchange: TokenExchange;
  attempts: AttemptLimits;
}

/** @spec Gateway: authentication and hosts */
export function authRoutes(http: Http, { exchange, attempts }: AuthRoutesServices): void {
  mount(http, exchangeToken, { auth: 'open' }, ({ body, request, reply }) => {
    reply.header('cache-control', 'no-store');
    return attempts.guard(request.ip, body.clientId, () => exchange.exchange(body));
  });
  mount(http, refreshToken, { auth: 'open' }, ({ body, request, reply }) => {
    reply.header('cache-control', 'no-store');
    return attempts.guard(request.ip, null, () => exchange.refresh(body.refreshToken));
  });
}
