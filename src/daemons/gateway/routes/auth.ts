import { exchangeToken, refreshToken } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { TokenExchange } from '../domain/token-exchange.ts';

/** @spec Gateway: authentication and hosts */
export function authRoutes(http: Http, { exchange }: { exchange: TokenExchange }): void {
  mount(http, exchangeToken, { auth: 'open' }, ({ body, reply }) => {
    reply.header('cache-control', 'no-store');
    return exchange.exchange(body);
  });
  mount(http, refreshToken, { auth: 'open' }, ({ body, reply }) => {
    reply.header('cache-control', 'no-store');
    return exchange.refresh(body.refreshToken);
  });
}
