import { MCP_PATH, type OAuthIssuer } from '../../../contracts/index.ts';
import type { Resources } from '../../define-daemon.ts';

type Location = Pick<Resources, 'config' | 'address'>;

/** Returns the public URL of the MCP endpoint. Call it only after the gateway listens, because of the port. */
export function mcpUrl({ config, address }: Location): string {
  const origin = new URL(config.gateway.publicUrl ?? `http://localhost:${address.port}`).origin;
  return origin + MCP_PATH;
}

/** Returns the issuer with the URL of the MCP endpoint as audience, so that tokens for other services are refused. */
export function mcpAudience(issuer: OAuthIssuer, location: Location): OAuthIssuer {
  return Object.defineProperty({ ...issuer }, 'audience', { enumerable: true, get: () => mcpUrl(location) });
}
