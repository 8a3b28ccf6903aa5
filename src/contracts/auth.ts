import { z } from 'zod';
import type { CallerAccess } from './access.ts';
import { endpoint } from './endpoint.ts';
import type { Role } from './role.ts';

/** `agent`: a tool of the MCP endpoint. `elicitation`: an answer of the person at an MCP client. */
export const CALL_VIA = ['agent', 'elicitation'] as const;
export type CallVia = (typeof CALL_VIA)[number];

/**
 * Identity of an authenticated request. Upstream services trust the identity that the gateway sends. @spec JWT claims
 */
export interface Caller {
  hostId: string;
  namespaceId: string;
  /** Restrictions by roles and scopes, or undefined for a caller without restrictions. Services do not get them. */
  access?: CallerAccess | undefined;
  /** Role in the namespace by which a gateway vouches for the caller. Undefined for calls without a gateway. */
  role?: Role | null | undefined;
  /**
   * Whether a gateway vouches that the caller administers the platform. The role does not tell: a caller without any
   * role keeps all rights of its token, so services see it as `admin`.
   */
  isAdministrator?: boolean | undefined;
  /** How the caller reached the gateway, if by its MCP endpoint. Undefined for other calls. */
  via?: CallVia | undefined;
  /** The only application whose endpoints and messages the caller may use. Set for calls with a portal link. */
  application?: string | undefined;
}

export const TokenReply = z
  .object({
    accessToken: z.string(),
    refreshToken: z.string(),
    expiresIn: z.number().int().describe('Seconds until the access token expires'),
    tokenType: z.literal('Bearer'),
  })
  .meta({ id: 'TokenReply' });

/** Exchanges a client's credentials for tokens. @spec Authentication 3 */
export const exchangeToken = endpoint({
  method: 'POST',
  path: '/auth/token',
  summary: 'Exchange client credentials for an access and a refresh token',
  tags: ['auth'],
  body: z.object({ clientId: z.string().min(1).max(256), clientSecret: z.string().min(1).max(1024) }),
  reply: TokenReply,
  errors: ['UNAUTHORIZED', 'RATE_LIMIT_EXCEEDED'],
});

/**
 * Exchanges a refresh token for a new access token and a new refresh token. @spec Authentication 3;
 * docs/security.md "Refresh tokens"
 */
export const refreshToken = endpoint({
  method: 'POST',
  path: '/auth/refresh',
  summary: 'Exchange a refresh token for a new access token; the refresh token rotates',
  tags: ['auth'],
  body: z.object({ refreshToken: z.string().min(1).max(1024) }),
  reply: TokenReply,
  errors: ['UNAUTHORIZED', 'RATE_LIMIT_EXCEEDED'],
});
