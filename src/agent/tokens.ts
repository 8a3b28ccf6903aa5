import { exchangeToken, refreshToken } from '../contracts/index.ts';
import { createClient } from '../http/client.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import type { Clock } from '../kit/time/clock.ts';
import { minutes } from '../kit/time/duration.ts';
import type { AgentIdentity } from './identity.ts';

/** Time between the renewal of a token and the expiry of the token, in ms. @spec Limits: agent token refresh lead */
const RENEW_LEAD_MS = minutes(5);

export interface AgentToken {
  accessToken: string;
  /** Expiry time in epoch milliseconds. */
  expiresAt: number;
}

export interface AgentTokens {
  /**
   * Returns the current token. Requests a new token if the current token is about to expire. Throws UNAUTHORIZED after
   * the host is revoked.
   */
  current(): Promise<AgentToken>;
  /** Requests a new token, even if the current token is valid. */
  renew(): Promise<AgentToken>;
  /** Returns the time in ms until the token should be renewed. */
  renewInMs(): number;
  forget(): void;
}

/**
 * Renews access tokens with the refresh token, or with the credentials if the refresh token is rejected. @spec
 * Authentication 3
 */
export function createAgentTokens(identity: AgentIdentity, clock: Clock): AgentTokens {
  const { clientId, clientSecret } = identity;
  const client = createClient({ url: identity.gateway, peer: 'gateway' });
  let token: AgentToken | undefined;
  /** Time of the next renewal on the monotonic clock, in ms. */
  let renewAt = 0;
  let refresh: string | undefined;

  async function fetchTokens() {
    if (refresh !== undefined) {
      const spent = refresh;
      refresh = undefined;
      try {
        return await client.call(refreshToken, { body: { refreshToken: spent } });
      } catch (error) {
        if (!(error instanceof PlatformError) || error.code !== 'UNAUTHORIZED') throw error;
      }
    }
    return client.call(exchangeToken, { body: { clientId, clientSecret } });
  }

  async function renew(): Promise<AgentToken> {
    const reply = await fetchTokens();
    refresh = reply.refreshToken;
    renewAt = clock.monotonic() + reply.expiresIn * 1000 - RENEW_LEAD_MS;
    token = { accessToken: reply.accessToken, expiresAt: clock.now() + reply.expiresIn * 1000 };
    return token;
  }
  const renewInMs = (): number => (token ? Math.max(0, renewAt - clock.monotonic()) : 0);
  return {
    renew,
    renewInMs,
    current: async () => (token && renewInMs() > 0 ? token : renew()),
    forget() {
      token = undefined;
    },
  };
}
