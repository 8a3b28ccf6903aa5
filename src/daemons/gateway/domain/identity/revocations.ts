import type { Clock } from '../../../../kit/time/clock.ts';
import type { Revocation, RevocationStore } from '../../../../store/ports/index.ts';
import type { ChangeFeed } from '../../../membership/change-feed.ts';

const PAGE = 1000;

/** Fields of a caller to which a revocation can refer. */
export interface Revocable {
  hostId: string;
  jti: string | null;
  /** Id of the login to which the token belongs. */
  sid?: string | undefined;
}

/** Revoked token or login. `id` is the `jti` of the token or the `sid` of the login. */
export interface RevokedToken {
  id: string;
  expiresAt: number;
}

export interface Revocations {
  isRevoked(caller: Revocable): boolean;
  /**
   * Revokes a host and its tokens. Settles when all processes and nodes reject the tokens, or after one second.
   * Resolves to false if the host was already revoked.
   */
  revokeHost(hostId: string): Promise<boolean>;
  /**
   * Revokes a token by its `jti`, or all access tokens of a login by their `sid`. The revocation is kept until
   * `expiresAt`.
   */
  revokeToken(id: string, expiresAt: number): Promise<boolean>;
  /** Revokes several tokens with a single wait for the other processes. */
  revokeTokens(tokens: readonly RevokedToken[]): Promise<void>;
  /**
   * Registers a listener for revocations by any process. The listener is called after this process has applied the
   * revocation.
   */
  onRevoked(listener: () => void): void;
}

export interface RevocationsDeps {
  store: RevocationStore;
  feed: Pick<ChangeFeed, 'follow' | 'spread'>;
  clock: Clock;
}

/**
 * Keeps revocations in memory for synchronous checks by authentication. A revocation is stored before its confirmation,
 * so that no restart can lose a revocation. @spec Gateway: DELETE /api/v1/hosts
 */
export async function createRevocations({ store, feed, clock }: RevocationsDeps): Promise<Revocations> {
  const hosts = new Set<string>();
  const tokens = new Map<string, number>();
  const listeners: Array<() => void> = [];

  function learn(news: readonly Omit<Revocation, 'sequence'>[]): void {
    for (const { kind, subject, expiresAt } of news) {
      if (kind === 'host') hosts.add(subject);
      else tokens.set(subject, expiresAt ?? Number.POSITIVE_INFINITY);
    }
    forgetExpired();
    if (news.length > 0) for (const listener of listeners) listener();
  }
  async function readAll(): Promise<void> {
    for (let sequence = 0; ; ) {
      const page = await store.since(sequence, PAGE);
      learn(page);
      if (page.length < PAGE) return;
      sequence = page.at(-1)!.sequence;
    }
  }
  function forgetExpired(): void {
    const now = clock.now();
    for (const [jti, expiresAt] of tokens) if (expiresAt <= now) tokens.delete(jti);
  }

  feed.follow('revocations', async (subjects) => {
    if (subjects === null) await readAll();
    else learn(await store.find(subjects));
  });
  await readAll();
  return {
    isRevoked: ({ hostId, jti, sid }) =>
      hosts.has(hostId) || (jti !== null && tokens.has(jti)) || (sid !== undefined && tokens.has(sid)),
    async revokeHost(hostId) {
      const isNew = await store.revokeHost(hostId, clock.now());
      learn([{ kind: 'host', subject: hostId, expiresAt: null }]);
      await feed.spread();
      return isNew;
    },
    async revokeToken(jti, expiresAt) {
      const isNew = await store.revokeToken(jti, expiresAt, clock.now());
      learn([{ kind: 'token', subject: jti, expiresAt }]);
      await feed.spread();
      return isNew;
    },
    async revokeTokens(revoked) {
      await Promise.all(revoked.map(({ id, expiresAt }) => store.revokeToken(id, expiresAt, clock.now())));
      learn(revoked.map(({ id, expiresAt }) => ({ kind: 'token', subject: id, expiresAt })));
      if (revoked.length > 0) await feed.spread();
    },
    onRevoked: (listener) => listeners.push(listener),
  };
}
