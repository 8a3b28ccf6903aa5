import { type PlatformConfig, SourceAuth, type SourceSettings } from '../../../../contracts/index.ts';
import { firstIssueIn } from '../../../../kit/data/first-issue.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import { settingsOf } from './destination-settings.ts';
import type { SourceEntry, StoredDestination } from './source-records.ts';

/** A source of `svc.config.json`. */
export interface DeclaredEntry {
  entry: SourceEntry;
  /** Reference to the environment variable with the secret, or null. */
  secret: string | null;
}

/** Returns the sources that the config declares. Their forward URLs may have private addresses. */
export function declaredSources({ declared }: PlatformConfig['sources']): DeclaredEntry[] {
  return Object.entries(declared).flatMap(([namespaceId, named]) =>
    Object.entries(named).map(([name, { secret, destinations, auth, ...rest }]) => {
      const settings: SourceSettings = {
        ...rest,
        ...(auth ? { auth: checkedAuth(auth, `${namespaceId}.${name}`) } : {}),
      };
      const stored = Object.entries(destinations).map(([destination, given]): [string, StoredDestination] => [
        destination,
        { name: destination, settings: settingsOf(given), mayBePrivate: true, createdAt: 0 },
      ]);
      const source = { namespaceId, name, settings, createdAt: 0 };
      const entry = { source, destinations: new Map(stored), isDeclared: true };
      return { entry, secret: secret ?? null };
    }),
  );
}

function checkedAuth(auth: unknown, at: string): SourceAuth {
  const { data, error } = SourceAuth.safeParse(auth);
  if (data) return data;
  throw new PlatformError('CONFIG_PARSE_ERROR', `${firstIssueIn(error!, `sources.declared.${at}.auth`)}.`);
}
