import { listTokens, mintToken, revokeToken } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { MintedTokens } from '../domain/identity/minted-tokens.ts';

/** @spec docs/gateway.md "Who may call" */
export function tokenRoutes(http: Http, { mintedTokens }: { mintedTokens: MintedTokens }): void {
  mount(http, mintToken, { auth: 'caller' }, ({ body, caller, reply }) => {
    reply.header('cache-control', 'no-store');
    return mintedTokens.mint(caller, body);
  });
  mount(http, listTokens, { auth: 'caller' }, ({ query, caller }) => mintedTokens.list(caller, query));
  mount(http, revokeToken, { auth: 'caller' }, async ({ params, caller }) => {
    await mintedTokens.revoke(caller, params.jti);
    return { revoked: true as const };
  });
}
