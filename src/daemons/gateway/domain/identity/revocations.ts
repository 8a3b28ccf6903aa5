import { messageOf } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import { type Clock, every } from '../../../../kit/time/clock.ts';
import type { Revocation, RevocationStore } from '../../../../store/ports/index.ts';
import type { ProcessGroup } from '../../../group/process-group.ts';

/** Maximum delay for revocations by other processes if their broadcast is lost. */
const POLL_MS = 200;
const PAGE = 1000;
const NEWS = 'revocations';

/** Fields of a caller by which it can be revoked. */
export interface Revocable {
  hostId: string;
  jti: string | null;
  /** Id of the login that the token belongs to. */
  sid?: string | undefined;
}

export interface Revocations {
  isRevoked(caller: Revocable): boolean;
  /**
   * Revokes a host and its tokens. All processes reject them once the promise settles. Returns false if the host was
   * already revoked.
   */
  revokeHost(hostId: string): Promise<boolean>;
  /**
   * Revokes a token by its `jti`, or all access tokens of a login by their `sid`. The revocation is kept until
   * `expiresAt`.
   */
  revokeToken(id: string, expiresAt: number): Promise<boolean>;
  /**
   * Registers a listener that is called after each revocation by any process, once this process rejects the token or
   * host.
   */
  onRevoked(listener: () => void): void;
  close(): void;
}

export interface RevocationsDeps {
  store: RevocationStore;
  clock: Clock;
  logger: Logger;
  /** Other processes share the store and may revoke too, so changes are broadcast. */
  group: ProcessGroup;
}

/**
 * Keeps revocations in memory, so that authentication can check them synchronously. They are stored first, so that a
 * restart cannot lose a confirmed one.
 * @spec Gateway: DELETE /api/v1/hosts
 */
export async function createRevocations({
  store,
  clock,
  logger,
  group,
}: RevocationsDeps): Promise<Revocations> {
  const hosts = new Set<string>();
  const tokens = new Map<string, number>();
  const listeners: Array<() => void> = [];
  let sequence = 0;

  function learn(news: readonly Revocation[]): void {
    for (const { kind, subject, expiresAt, sequence: number } of news) {
      if (kind === 'host') hosts.add(subject);
      else tokens.set(subject, expiresAt ?? Number.POSITIVE_INFINITY);
      sequence = Math.max(sequence, number);
    }
    if (news.length > 0) for (const listener of listeners) listener();
  }
  async function readNews(): Promise<void> {
    for (;;) {
      const news = await store.since(sequence, PAGE);
      learn(news);
      if (news.length < PAGE) return;
    }
  }
  function forgetExpired(): void {
    const now = clock.now();
    for (const [jti, expiresAt] of tokens) if (expiresAt <= now) tokens.delete(jti);
  }
  function poll(): void {
    forgetExpired();
    readNews().catch((error) => logger.warn(`Cannot read revocations: ${messageOf(error)}`, { error }));
  }

  await readNews();
  group.onNews(NEWS, readNews);
  const stop = group.role !== 'alone' ? every(clock, POLL_MS, poll) : () => {};
  return {
    isRevoked: ({ hostId, jti, sid }) =>
      hosts.has(hostId) || (jti !== null && tokens.has(jti)) || (sid !== undefined && tokens.has(sid)),
    async revokeHost(hostId) {
      const fresh = await store.revokeHost(hostId, clock.now());
      await readNews();
      await group.announce(NEWS);
      return fresh;
    },
    async revokeToken(jti, expiresAt) {
      forgetExpired();
      const fresh = await store.revokeToken(jti, expiresAt, clock.now());
      await readNews();
      await group.announce(NEWS);
      return fresh;
    },
    onRevoked: (listener) => listeners.push(listener),
    close: stop,
  };
}
