import type { Seal } from '../../../../kit/security/keys.ts';
import { webhookKeyOf } from '../../../../kit/security/standard-webhooks.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { OutgoingEndpointStore, StoredEndpoint } from '../../../../store/ports/index.ts';
import { sealedColumns } from '../../../../store/ports/sealed-columns.ts';
import type { ChangeFeed } from '../../../membership/change-feed.ts';

export interface EndpointRegistryDeps {
  store: OutgoingEndpointStore;
  feed: Pick<ChangeFeed, 'follow' | 'spread'>;
  seal: Seal;
  logger: Logger;
}

/** An endpoint with its decrypted keys and headers. */
export interface KnownEndpoint {
  record: StoredEndpoint;
  url: URL;
  keys: { current: Buffer; previous: Buffer | null };
  /** Custom headers: names and values, one after the other. */
  headers: string[];
}

/** Called after a change of an endpoint. `known` is undefined if the endpoint was deleted. */
export type EndpointListener = (id: string, known: KnownEndpoint | undefined) => void;

const COLUMNS = sealedColumns('outgoing_endpoint');

/** Returns the encryption context of a sealed column of an endpoint. */
export const endpointContext = (id: string, column: 'headers' | 'secret'): string =>
  COLUMNS.context({ id }, column);

/** Endpoints of all namespaces in memory, kept current by the change feed. @spec docs/messages.md */
export class EndpointRegistry {
  readonly #deps: EndpointRegistryDeps;
  readonly #byId = new Map<string, KnownEndpoint>();
  /** Enabled endpoints by namespace and application. */
  readonly #groups = new Map<string, Map<string, KnownEndpoint>>();
  /** Endpoints of each event type that was published, by group and type. */
  readonly #matches = new Map<string, KnownEndpoint[]>();
  readonly #listeners: EndpointListener[] = [];
  /** Reads of the store run one after the other, so that an older read never replaces a newer one. */
  #reading: Promise<void> = Promise.resolve();

  private constructor(deps: EndpointRegistryDeps) {
    this.#deps = deps;
    deps.feed.follow('endpoints', (ids) => this.reread(ids));
  }

  static async open(deps: EndpointRegistryDeps): Promise<EndpointRegistry> {
    const registry = new EndpointRegistry(deps);
    await registry.reread(null);
    return registry;
  }

  onChange(listener: EndpointListener): void {
    this.#listeners.push(listener);
  }

  find(id: string): KnownEndpoint | undefined {
    return this.#byId.get(id);
  }

  /** Returns the enabled endpoints that receive a message. */
  match(namespaceId: string, application: string | null, type: string): readonly KnownEndpoint[] {
    const group = groupOf(namespaceId, application);
    const key = `${group} ${type}`;
    let found = this.#matches.get(key);
    if (!found) {
      found = [...(this.#groups.get(group)?.values() ?? [])].filter(({ record }) =>
        receives(record.types, type),
      );
      if (this.#matches.size > MAX_MATCHES) this.#matches.clear();
      this.#matches.set(key, found);
    }
    return found;
  }

  /** Applies a change of this process, and waits until other processes have read it. */
  async changed(id: string): Promise<void> {
    await this.reread([id]);
    await this.#deps.feed.spread();
  }

  /** Reads endpoints from the store again. Null: all endpoints. */
  reread(ids: readonly string[] | null): Promise<void> {
    const read = this.#reading.then(() => this.#read(ids));
    this.#reading = read.catch(() => {});
    return read;
  }

  async #read(ids: readonly string[] | null): Promise<void> {
    const { store } = this.#deps;
    const found = await (ids === null ? store.all() : store.read(ids));
    const records = new Map(found.map((record) => [record.id, record]));
    for (const id of new Set([...(ids ?? this.#byId.keys()), ...records.keys()]))
      this.#put(id, records.get(id));
    this.#matches.clear();
  }

  #put(id: string, record: StoredEndpoint | undefined): void {
    const before = this.#byId.get(id);
    if (before) this.#groups.get(groupOfRecord(before.record))?.delete(id);
    const known = record && this.#open(record);
    if (!known) this.#byId.delete(id);
    else {
      this.#byId.set(id, known);
      if (known.record.disabledReason === null) this.#join(known);
    }
    for (const listener of this.#listeners) listener(id, known);
  }

  #join(known: KnownEndpoint): void {
    const name = groupOfRecord(known.record);
    const group = this.#groups.get(name) ?? new Map<string, KnownEndpoint>();
    this.#groups.set(name, group.set(known.record.id, known));
  }

  /** Decrypts keys and headers. An endpoint whose secret is damaged sends nothing. */
  #open(record: StoredEndpoint): KnownEndpoint | undefined {
    const { seal, logger } = this.#deps;
    const { id, secret, previousSecret, headers } = record;
    try {
      const keyOf = (sealed: string): Buffer =>
        webhookKeyOf(seal.open(sealed, endpointContext(id, 'secret')));
      const custom = headers === null ? {} : JSON.parse(seal.open(headers, endpointContext(id, 'headers')));
      return {
        record,
        url: new URL(record.url),
        keys: { current: keyOf(secret), previous: previousSecret === null ? null : keyOf(previousSecret) },
        headers: Object.entries(custom as Record<string, string>).flat(),
      };
    } catch (error) {
      logger.warn(`The secret or the headers of endpoint ${id} cannot be decrypted, so it receives nothing`, {
        error,
      });
      return undefined;
    }
  }
}

const MAX_MATCHES = 10_000;

const groupOf = (namespaceId: string, application: string | null): string =>
  JSON.stringify([namespaceId, application]);
const groupOfRecord = ({ namespaceId, application }: StoredEndpoint): string =>
  groupOf(namespaceId, application);

/** Returns whether the patterns contain an event type. */
export function receives(patterns: readonly string[], type: string): boolean {
  return patterns.some(
    (pattern) =>
      pattern === '*' ||
      pattern === type ||
      (pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1))),
  );
}
