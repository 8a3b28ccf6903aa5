import { ALL_NAMESPACES, type Caller } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Admins } from '../identity/admins.ts';

/** Decides which namespace a call on rules, channels and silences acts on. "*" is that of operators. */
export class SettingScope {
  readonly #admins: Admins;

  constructor(admins: Admins) {
    this.#admins = admins;
  }

  /** Throws FORBIDDEN unless the caller belongs to the namespace or is an operator. */
  owner({ caller, asked }: Scoped): string {
    return this.#admins.scope(caller, asked);
  }

  /** Returns the namespace of a new entry. Entries about the platform belong to operators. */
  ownerOfNew({ caller, asked }: Scoped, isPlatform: boolean): string {
    if (!isPlatform) return this.owner({ caller, asked });
    this.#admins.require(caller);
    if (asked === undefined || asked === ALL_NAMESPACES) return ALL_NAMESPACES;
    throw new PlatformError(
      'VALIDATION_ERROR',
      'Rules about the platform belong to no namespace: leave out namespaceId.',
    );
  }

  /** Returns the namespaces in which an entry is looked up, in order. */
  lookup({ caller, asked }: Scoped): string[] {
    const owner = this.owner({ caller, asked });
    return asked === undefined && this.#admins.is(caller) ? [owner, ALL_NAMESPACES] : [owner];
  }

  /** Returns the only namespace of a list, or undefined for all. */
  list({ caller, asked }: Scoped): string | undefined {
    return this.#admins.listScope(caller, asked);
  }

  maySee(caller: Caller, namespaceId: string): boolean {
    return namespaceId === caller.namespaceId || this.#admins.is(caller);
  }
}

export interface Scoped {
  caller: Caller;
  /** Namespace that the call names. */
  asked: string | undefined;
}

interface Named {
  namespaceId: string;
  name: string;
}

/** Returns a page of settings, ordered by namespace and name. */
export function settingsPage<Setting extends Named>(
  settings: readonly Setting[],
  { scope, cursor = '', limit }: { scope: string | undefined; cursor?: string | undefined; limit: number },
): { items: Setting[]; nextCursor: string | null } {
  const keyOf = ({ namespaceId, name }: Named) => `${namespaceId}/${name}`;
  const found = settings
    .filter((setting) => (scope === undefined || setting.namespaceId === scope) && keyOf(setting) > cursor)
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  const items = found.slice(0, limit);
  return { items, nextCursor: found.length > limit ? keyOf(items.at(-1)!) : null };
}

export function notFound(what: string, name: string): PlatformError {
  return new PlatformError('NOT_FOUND', `There is no ${what} "${name}"; \`svc alerts ${what}s\` shows them.`);
}

export function declaredError(what: string, name: string): PlatformError {
  return new PlatformError(
    'CONFLICT',
    `The ${what} "${name}" is declared in svc.config.json. Change it there, and restart the gateway.`,
  );
}

export const MAX_SETTINGS = 500;

export function requireRoom(settings: readonly Named[], what: string, namespaceId: string): void {
  if (settings.filter((setting) => setting.namespaceId === namespaceId).length < MAX_SETTINGS) return;
  throw new PlatformError('CONFLICT', `A namespace can have ${MAX_SETTINGS} ${what}s. Delete one first.`);
}
