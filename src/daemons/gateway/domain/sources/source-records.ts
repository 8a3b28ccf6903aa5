import type { DestinationSettings, SourceSettings } from '../../../../contracts/index.ts';

/** A source as it is stored. */
export interface StoredSource {
  namespaceId: string;
  name: string;
  settings: SourceSettings;
  /** Epoch ms. */
  createdAt: number;
}

/** A destination as it is stored. */
export interface StoredDestination {
  name: string;
  settings: DestinationSettings;
  /** Whether an operator chose the forward URL, so that it may have a private address. */
  mayBePrivate: boolean;
  createdAt: number;
}

/** A source with its destinations. Entries are immutable: a change makes a new entry. */
export interface SourceEntry {
  source: StoredSource;
  destinations: ReadonlyMap<string, StoredDestination>;
  /** Whether `svc.config.json` declares the source. */
  isDeclared: boolean;
}

/** Returns the key of a source or of one of its destinations in the store. */
export function storeKey(namespaceId: string, name: string, destination?: string): string {
  return JSON.stringify(destination === undefined ? [namespaceId, name] : [namespaceId, name, destination]);
}

/** Returns the prefix that the store keys of all destinations of a source have. */
export function destinationsPrefix(namespaceId: string, name: string): string {
  return `${storeKey(namespaceId, name).slice(0, -1)},`;
}
