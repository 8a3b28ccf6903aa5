import { hash } from 'node:crypto';
import type { Caller, PlatformConfig } from '../../../../contracts/index.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { JsonValue, KeyValueStore } from '../../../../store/ports/index.ts';
import { hasOuterBlank } from './bearer.ts';

/** Cache scope of the platform's own entries. */
export const PLATFORM_SCOPE = 'platform';
const PREFIX = 'host:token:';
const PAGE = 500;
/**
 * Cache scope of the applied static token revisions, oldest first. FEED_SCOPES contains this scope, so changes are
 * added to the change feed.
 */
const REVISIONS_SCOPE = 'static-token-revisions';
const REVISIONS_ENTRY = 'revisions';
const MAX_REVISIONS = 100;
const REVISION_CHARS = 16;

type Entries = PlatformConfig['gateway']['staticTokens'];

export interface StaticTokens {
  /**
   * Returns the caller of the token. Tokens must match exactly, including case and whitespace. Non-ASCII tokens can
   * arrive as UTF-8 or as Latin-1.
   */
  find(token: string): Promise<Caller | undefined>;
  /** Returns whether the static token behind a studio session, given by `loginOf`, is still configured. */
  hasLogin(login: string): Promise<boolean>;
}

const LOGIN_PREFIX = 'static:';

/** Returns the login id of a studio session that a static token started. The id does not reveal the token. */
export function loginOf(token: string): string {
  return LOGIN_PREFIX + hash('sha256', token, 'base64url');
}

/** Returns whether a static token started the session with this login id. */
export function isStaticLogin(login: string | undefined): login is string {
  return login?.startsWith(LOGIN_PREFIX) ?? false;
}

/** Returns a digest of the static tokens of a config. */
export function staticTokensRevision(entries: Entries): string {
  const sorted = Object.entries(entries).sort(([a], [b]) => (a < b ? -1 : 1));
  return hash('sha256', JSON.stringify(sorted), 'base64url').slice(0, REVISION_CHARS);
}

export interface StaticTokensDeps {
  cache: KeyValueStore;
  logger: Logger;
  /** Static token revisions of the other live nodes. */
  elsewhere: readonly (string | null)[];
}

/**
 * Stores the static tokens of the config as `host:token:<token>`. Deletes all other entries, which revokes removed
 * tokens. Changes nothing if another live node runs with a newer config. @spec Static token entry; Authentication 5;
 * docs/decisions/0218
 */
export async function syncStaticTokens(
  entries: Entries,
  { cache, logger, elsewhere }: StaticTokensDeps,
): Promise<StaticTokens> {
  const revision = staticTokensRevision(entries);
  const applied = await appliedRevisions(cache);
  const inForce = applied.at(-1);
  if (inForce !== revision && applied.includes(revision) && elsewhere.includes(inForce ?? null)) {
    logger.warn(
      "The static tokens of this node's config are older than those of another running node, which stay in force. Bring gateway.staticTokens up to date on this node and restart it.",
    );
    return storedStaticTokens(cache);
  }
  for (const [token, { hostId, namespaceId }] of Object.entries(entries)) {
    if (hasOuterBlank(token)) warnUnusable(logger, hostId);
    await cache.set(PLATFORM_SCOPE, PREFIX + token, { hostId, namespaceId });
  }
  for await (const key of storedKeys(cache)) {
    if (!Object.hasOwn(entries, key.slice(PREFIX.length))) await cache.delete(PLATFORM_SCOPE, key);
  }
  if (inForce !== revision) {
    const next = [...applied.filter((one) => one !== revision), revision].slice(-MAX_REVISIONS);
    await cache.set(REVISIONS_SCOPE, REVISIONS_ENTRY, next);
  }
  return storedStaticTokens(cache);
}

/** Returns the applied revisions, oldest first. */
async function appliedRevisions(cache: KeyValueStore): Promise<string[]> {
  const entry = await cache.get(REVISIONS_SCOPE, REVISIONS_ENTRY);
  return (entry?.value ?? []) as string[];
}

/** Returns a lookup for the static tokens that are stored in the cache. */
export function storedStaticTokens(cache: KeyValueStore): StaticTokens {
  async function lookUp(token: string): Promise<Caller | undefined> {
    // Text with NUL or lone surrogates cannot be a cache key, so no stored token can match.
    if (token.includes('\0') || !token.isWellFormed()) return undefined;
    return callerOf((await cache.get(PLATFORM_SCOPE, PREFIX + token))?.value);
  }
  return {
    async find(token) {
      const found = await lookUp(token);
      if (found) return found;
      const text = Buffer.from(token, 'latin1').toString('utf8');
      // Decoding replaces invalid UTF-8 by replacement characters. The decoded text must not match a stored token that
      // contains such characters.
      return text !== token && Buffer.from(text).toString('latin1') === token ? lookUp(text) : undefined;
    },
    async hasLogin(login) {
      for await (const key of storedKeys(cache)) if (loginOf(key.slice(PREFIX.length)) === login) return true;
      return false;
    },
  };
}

async function* storedKeys(cache: KeyValueStore): AsyncGenerator<string> {
  for (let after: string | undefined; ; ) {
    const page = await cache.scan(PLATFORM_SCOPE, {
      prefix: PREFIX,
      limit: PAGE,
      ...(after ? { after } : {}),
    });
    for (const { key } of page) yield key;
    if (page.length < PAGE) return;
    after = page.at(-1)!.key;
  }
}

function callerOf(value: JsonValue | undefined): Caller | undefined {
  const { hostId, namespaceId } = (value ?? {}) as Partial<Record<string, JsonValue>>;
  return typeof hostId === 'string' && typeof namespaceId === 'string' ? { hostId, namespaceId } : undefined;
}

function warnUnusable(logger: Logger, hostId: string): void {
  logger.diagnostic({
    domain: 'auth',
    event: 'auth.static_token_unusable',
    level: 'warn',
    reasonCode: 'TOKEN_HAS_OUTER_WHITESPACE',
    message: `A static token of "${hostId}" begins or ends with whitespace and can never match; remove it from gateway.staticTokens.`,
    outcome: 'degraded',
    evidence: { hostId },
  });
}
