import { createHash } from 'node:crypto';
import { LIMITS } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { days, seconds } from '../../../../kit/time/duration.ts';
import type { ClientRecord, RefreshTokenRecord, RefreshTokenStore } from '../../../../store/ports/index.ts';
import type { Subject } from './authenticator.ts';
import type { ClientRegistry, Credentials } from './client-registry.ts';
import type { Jwts } from './jwt.ts';
import type { Revocations } from './revocations.ts';

const REFRESH_LIFE_MS = days(30);
const ACCESS_LIFE_MS = seconds(LIMITS.accessTokenSeconds + LIMITS.jwtClockToleranceSeconds);
/**
 * Time within which reuse of a refresh token counts as a client's retry after a lost response. Later reuse suggests
 * theft.
 */
const LOST_REPLY_MS = seconds(10);

export interface TokenPair {
  accessToken: string;
  refreshToken: string;
  expiresIn: number;
  tokenType: 'Bearer';
}

export interface TokenExchangeDeps {
  clients: ClientRegistry;
  refreshTokens: RefreshTokenStore;
  jwts: Jwts;
  revocations: Pick<Revocations, 'revokeToken'>;
  clock: Clock;
  random: Random;
  logger: Logger;
}

/**
 * Sender of a request, as logged when its credentials are rejected. The tenant is not logged, because an unverified
 * client id is not trusted.
 */
export type Sender = Pick<Subject, 'ip' | 'requestId' | 'traceId'>;

const REFUSAL_MESSAGE =
  'These credentials are not valid; check them, or ask an administrator for new ones with `svc clients create`.';

/**
 * Exchanges credentials or a refresh token for a token pair.
 * @spec Authentication 3; docs/security.md "Refresh tokens"
 */
export class TokenExchange {
  readonly #deps: TokenExchangeDeps;

  constructor(deps: TokenExchangeDeps) {
    this.#deps = deps;
  }

  async exchange(credentials: Credentials, sender: Sender): Promise<TokenPair> {
    const client = await this.#deps.clients.verify(credentials);
    if (!client) {
      const { clientId } = credentials;
      throw this.#refused('CLIENT_CREDENTIALS_INVALID', 'Client credentials were refused.', sender, {
        clientId,
      });
    }
    const { token, record } = this.#fresh(client.clientId, this.#deps.random.uuid());
    await this.#deps.refreshTokens.add(record);
    return this.#pair(client, token, record.familyId);
  }

  /**
   * Exchanges a refresh token for new tokens. Reuse of a spent token after `LOST_REPLY_MS` suggests theft, so all
   * tokens of the login are revoked.
   */
  async refresh(refreshToken: string, sender: Sender): Promise<TokenPair> {
    const tokenHash = hashOf(refreshToken);
    const known = await this.#deps.refreshTokens.find(tokenHash);
    if (!known)
      throw this.#refused(
        'REFRESH_TOKEN_UNKNOWN',
        'An unknown or expired refresh token was refused.',
        sender,
      );
    const { clientId, familyId } = known;
    const client = await this.#deps.clients.valid(clientId);
    if (!client)
      throw this.#refused('CLIENT_REVOKED', 'A refresh token of a revoked client was refused.', sender, {
        clientId,
      });
    const { token, record } = this.#fresh(clientId, familyId);
    const outcome = await this.#deps.refreshTokens.rotate(
      tokenHash,
      record,
      this.#deps.clock.now(),
      LOST_REPLY_MS,
    );
    if (outcome === 'rotated' || outcome === 'repeated') return this.#pair(client, token, familyId);
    if (outcome === 'unknown')
      throw this.#refused(
        'REFRESH_TOKEN_UNKNOWN',
        'A refresh token was refused: its login was revoked.',
        sender,
      );
    const revoked = await this.#deps.refreshTokens.revokeFamily(familyId);
    // Revoking the family id also revokes access tokens that were just issued. These tokens contain the family id as
    // `sid`.
    await this.#deps.revocations.revokeToken(familyId, this.#deps.clock.now() + ACCESS_LIFE_MS);
    throw this.#refused(
      'REFRESH_TOKEN_REUSED',
      'A spent refresh token was reused: every token of its login was revoked, since one of the two senders may be an attacker.',
      sender,
      { clientId, revoked },
    );
  }

  #fresh(clientId: string, familyId: string): { token: string; record: RefreshTokenRecord } {
    const token = `svcr_${this.#deps.random.secret(32)}`;
    const createdAt = this.#deps.clock.now();
    const expiresAt = createdAt + REFRESH_LIFE_MS;
    return {
      token,
      record: { tokenHash: hashOf(token), familyId, clientId, createdAt, expiresAt, spentAt: null },
    };
  }

  async #pair({ hostId, namespaceId }: ClientRecord, refreshToken: string, sid: string): Promise<TokenPair> {
    const ttlSeconds = LIMITS.accessTokenSeconds;
    const { token } = await this.#deps.jwts.mint({ hostId, namespaceId, typ: 'access', ttlSeconds, sid });
    return { accessToken: token, refreshToken, expiresIn: ttlSeconds, tokenType: 'Bearer' };
  }

  #refused(
    reasonCode: string,
    message: string,
    { ip, requestId, traceId }: Sender,
    evidence: Record<string, unknown> = {},
  ): PlatformError {
    this.#deps.logger.diagnostic(
      {
        domain: 'auth',
        event: 'auth.failed',
        level: 'warn',
        reasonCode,
        message,
        outcome: 'refused',
        evidence: { ip, ...evidence },
      },
      { requestId, traceId },
    );
    return new PlatformError('UNAUTHORIZED', REFUSAL_MESSAGE, { headers: { 'www-authenticate': 'Bearer' } });
  }
}

/** The store contains only digests. Tokens have 256 random bits, so the digests need no salt. */
function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}
