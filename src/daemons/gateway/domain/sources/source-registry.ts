import type { JsonValue, KeyValueStore } from '../../../../store/ports/index.ts';
import type { ChangeFeed } from '../../../membership/change-feed.ts';
import {
  destinationsPrefix,
  type SourceEntry,
  type StoredDestination,
  type StoredSource,
  storeKey,
} from './source-records.ts';

/** Cache scope of sources. FEED_SCOPES contains this scope, so changes are added to the change feed. */
const SCOPE = 'sources';
const PAGE = 1000;

export interface SourceRegistryDeps {
  /** The platform's store of entries. Sources and destinations are separate entries, so that changes never collide. */
  cache: KeyValueStore;
  feed: Pick<ChangeFeed, 'follow' | 'spread'>;
  /** Sources that the config declares. They hide stored sources of the same name. */
  declared: readonly SourceEntry[];
}

type ByNamespace = Map<string, Map<string, SourceEntry>>;
type Destinations = ReadonlyMap<string, StoredDestination>;

/** Sources of all namespaces, in memory and in the store. @spec docs/sources.md */
export class SourceRegistry {
  readonly #deps: SourceRegistryDeps;
  readonly #declared: ByNamespace = new Map();
  #stored: ByNamespace = new Map();
  /** Reads of the store run one after the other, so that an older read never replaces a newer one. */
  #reading: Promise<void> = Promise.resolve();

  private constructor(deps: SourceRegistryDeps) {
    this.#deps = deps;
    for (const entry of deps.declared) put(this.#declared, entry);
    deps.feed.follow('sources', (keys) => this.#reload(keys));
  }

  static async open(deps: SourceRegistryDeps): Promise<SourceRegistry> {
    const registry = new SourceRegistry(deps);
    await registry.#reload(null);
    return registry;
  }

  /** Returns a source. The method is synchronous, because it is called for each delivery. */
  find(namespaceId: string, name: string): SourceEntry | undefined {
    return this.#declared.get(namespaceId)?.get(name) ?? this.#stored.get(namespaceId)?.get(name);
  }

  /** Returns the sources of a namespace, ordered by name. */
  list(namespaceId: string): SourceEntry[] {
    const all = new Map([
      ...(this.#stored.get(namespaceId) ?? []),
      ...(this.#declared.get(namespaceId) ?? []),
    ]);
    return [...all.values()].sort((a, b) => (a.source.name < b.source.name ? -1 : 1));
  }

  /** Reads a source from the store again. Used before a delivery fails because its destination is unknown. */
  reread(namespaceId: string, name: string): Promise<void> {
    return this.#reload([storeKey(namespaceId, name)]);
  }

  /** Stores a new source. Returns false if the name is taken. */
  async create(source: StoredSource): Promise<boolean> {
    const { cache } = this.#deps;
    const { namespaceId, name } = source;
    // A crash during a deletion can leave destinations behind. The new source must not get them.
    if (!this.find(namespaceId, name)) await this.#removeDestinations(namespaceId, name);
    const isNew = await cache.setIfAbsent(SCOPE, storeKey(namespaceId, name), source as never);
    await this.#changed(namespaceId, name);
    return isNew;
  }

  async update(source: StoredSource): Promise<void> {
    const { namespaceId, name } = source;
    await this.#deps.cache.set(SCOPE, storeKey(namespaceId, name), source as never);
    await this.#changed(namespaceId, name);
  }

  async remove(namespaceId: string, name: string): Promise<void> {
    await this.#deps.cache.delete(SCOPE, storeKey(namespaceId, name));
    await this.#removeDestinations(namespaceId, name);
    await this.#changed(namespaceId, name);
  }

  /** Stores a new destination. Returns false if the name is taken. */
  async connect(namespaceId: string, name: string, destination: StoredDestination): Promise<boolean> {
    const key = storeKey(namespaceId, name, destination.name);
    const isNew = await this.#deps.cache.setIfAbsent(SCOPE, key, destination as never);
    await this.#changed(namespaceId, name);
    return isNew;
  }

  async updateDestination(namespaceId: string, name: string, destination: StoredDestination): Promise<void> {
    await this.#deps.cache.set(SCOPE, storeKey(namespaceId, name, destination.name), destination as never);
    await this.#changed(namespaceId, name);
  }

  async disconnect(namespaceId: string, name: string, destination: string): Promise<void> {
    await this.#deps.cache.delete(SCOPE, storeKey(namespaceId, name, destination));
    await this.#changed(namespaceId, name);
  }

  async #removeDestinations(namespaceId: string, name: string): Promise<void> {
    const { cache } = this.#deps;
    const prefix = destinationsPrefix(namespaceId, name);
    for (const { key } of await cache.scan(SCOPE, { prefix, limit: PAGE })) await cache.delete(SCOPE, key);
  }

  async #changed(namespaceId: string, name: string): Promise<void> {
    await this.#reload([storeKey(namespaceId, name)]);
    await this.#deps.feed.spread();
  }

  #reload(keys: readonly string[] | null): Promise<void> {
    const read = this.#reading.then(() => (keys === null ? this.#readAll() : this.#read(keys)));
    this.#reading = read.catch(() => {});
    return read;
  }

  async #read(keys: readonly string[]): Promise<void> {
    const { cache } = this.#deps;
    const names = new Set(keys.map((key) => storeKey(...partsOf(key))));
    for (const key of names) {
      const [namespaceId, name] = partsOf(key);
      const [source, destinations] = await Promise.all([
        cache.get(SCOPE, key),
        cache.scan(SCOPE, { prefix: destinationsPrefix(namespaceId, name), limit: PAGE }),
      ]);
      if (!source) this.#stored.get(namespaceId)?.delete(name);
      else
        put(
          this.#stored,
          entryOf(
            source.value,
            destinations.map(({ value }) => value),
          ),
        );
    }
  }

  async #readAll(): Promise<void> {
    const values: Array<{ key: string; value: JsonValue }> = [];
    for (let after: string | undefined; ; ) {
      const page = await this.#deps.cache.scan(SCOPE, {
        prefix: '',
        limit: PAGE,
        ...(after === undefined ? {} : { after }),
      });
      values.push(...page);
      if (page.length < PAGE) break;
      after = page.at(-1)!.key;
    }
    const stored: ByNamespace = new Map();
    const byName = Map.groupBy(values, ({ key }) => storeKey(...partsOf(key)));
    for (const [key, ofSource] of byName) {
      const source = ofSource.find((value) => value.key === key);
      const destinations = ofSource.filter((value) => value !== source).map(({ value }) => value);
      if (source) put(stored, entryOf(source.value, destinations));
    }
    this.#stored = stored;
  }
}

/** Returns namespace and name of the source of a store key. */
function partsOf(key: string): [namespaceId: string, name: string] {
  const [namespaceId, name] = JSON.parse(key) as [string, string];
  return [namespaceId, name];
}

function entryOf(source: JsonValue, destinations: readonly JsonValue[]): SourceEntry {
  const stored = destinations as unknown as StoredDestination[];
  const named: Destinations = new Map(stored.map((destination) => [destination.name, destination]));
  return { source: source as unknown as StoredSource, destinations: named, isDeclared: false };
}

function put(sources: ByNamespace, entry: SourceEntry): void {
  const { namespaceId, name } = entry.source;
  const named = sources.get(namespaceId) ?? new Map<string, SourceEntry>();
  sources.set(namespaceId, named.set(name, entry));
}
