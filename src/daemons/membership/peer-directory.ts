import type { PlatformConfig, ServiceName } from '../../contracts/index.ts';
import { postgresUrlOf, usesPostgres } from '../../kit/config/store-url.ts';
import { every } from '../../kit/time/clock.ts';
import { seconds } from '../../kit/time/duration.ts';
import { openMembers } from '../../store/open-store.ts';
import type { MemberStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import { acceptsConnections } from './accepts-connections.ts';
import { joinMembers } from './join-members.ts';
import { isReachable, memberUrl } from './member-url.ts';

/** Maximum delay until a new address of another node is used, and until that of a stopping service is not. */
const POLL_MS = seconds(1);

/** Services that join the members themselves, because they own rows of the store or load plugins. */
const MEMBERS: ReadonlySet<ServiceName> = new Set(['gateway', 'rest', 'workflow', 'marketplace']);

type Urls = Partial<Record<ServiceName, readonly string[]>>;

/**
 * Addresses of the services that other nodes run: `services.<name>.url`, or else the members of the shared store. Also
 * stores the address of this process, so that other nodes find it.
 */
export class PeerDirectory {
  readonly #service: ServiceName;
  readonly #resources: Resources;
  readonly #stack: AsyncDisposableStack;
  /** Connections to the members, opened on first use. Nodes that run all services on loopback need none. */
  #members: MemberStore | undefined;
  /** Services whose addresses are read from the store. */
  readonly #sought: readonly ServiceName[];
  readonly #configured: Urls;
  #known: Urls = {};
  /** Whether the last read failed. Only the first failure of an outage is logged. */
  #isAway = false;
  #reading: Promise<void> | undefined;
  #withdraw: (() => Promise<void>) | undefined;

  private constructor(service: ServiceName, resources: Resources, stack: AsyncDisposableStack) {
    const { config, elsewhere = [] } = resources;
    this.#service = service;
    this.#resources = resources;
    this.#stack = stack;
    this.#configured = configuredUrls(config, elsewhere);
    const others = elsewhere.filter((name) => !this.#configured[name] && name !== service);
    this.#sought = isCluster(config) ? others : [];
  }

  /** Reads the addresses for the first time, and then once per second. Throws STORE_ERROR for an unusable schema. */
  static async open(
    service: ServiceName,
    resources: Resources,
    stack: AsyncDisposableStack,
  ): Promise<PeerDirectory> {
    const directory = new PeerDirectory(service, resources, stack);
    const isSeeking = directory.#sought.length > 0;
    if (isSeeking) await directory.#openMembers();
    await directory.#read();
    if (isSeeking) {
      stack.defer(() => directory.#reading);
      stack.defer(every(resources.clock, POLL_MS, () => void directory.#read()));
    }
    return directory;
  }

  /**
   * Stores the address of this process until it stops. `withdraw` marks a service as stopping that has joined the
   * members itself.
   */
  async announce(withdraw: (() => Promise<void>) | undefined): Promise<void> {
    this.#withdraw = withdraw;
    if (!isCluster(this.#resources.config)) return;
    const url = memberUrl(this.#service, this.#resources);
    if (!isReachable(url, this.#resources)) return this.#warnUnreachable(url);
    if (MEMBERS.has(this.#service)) return;
    const joining = { kind: this.#service, release: null, keys: null };
    const membership = await joinMembers(this.#resources, await this.#openMembers(), joining, this.#stack);
    membership.announce(url);
    this.#withdraw = () => membership.withdraw();
  }

  /** Marks this process as stopping. Other nodes use other processes of the service after their next read. */
  async withdraw(): Promise<void> {
    await this.#withdraw?.();
  }

  async #openMembers(): Promise<MemberStore> {
    if (this.#members) return this.#members;
    const { config, env, logger } = this.#resources;
    const opened = await openMembers({ postgresUrl: postgresUrlOf(config.store, env)!, logger });
    this.#stack.adopt(opened, () => opened.close());
    this.#members = opened.members;
    return opened.members;
  }

  #read(): Promise<void> {
    this.#reading ??= this.#readOnce().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readOnce(): Promise<void> {
    const { peers, logger } = this.#resources;
    try {
      const found = await Promise.all(this.#sought.map((name) => this.#findUrls(name)));
      this.#known = Object.fromEntries(found);
      this.#isAway = false;
      peers.setElsewhere({ ...this.#configured, ...this.#known });
    } catch (error) {
      if (!this.#isAway)
        logger.warn('The addresses of other nodes cannot be read; the last known ones stay in use', {
          error,
        });
      this.#isAway = true;
    }
  }

  /**
   * Returns the addresses of live members, without those of killed processes, whose lease has not expired yet. Without
   * live members, the last known addresses stay in use while they accept connections: after an outage of the store, all
   * leases have expired.
   */
  async #findUrls(name: ServiceName): Promise<[ServiceName, readonly string[]]> {
    const live = await this.#liveUrls(name);
    const known = this.#known[name] ?? [];
    if (live.length === 1) return [name, live];
    const candidates = live.length > 0 ? live : known;
    const accepting = await Promise.all(candidates.map(acceptsConnections));
    const usable = candidates.filter((_, index) => accepting[index]);
    return [name, usable.length > 0 ? usable : live];
  }

  async #liveUrls(name: ServiceName): Promise<readonly string[]> {
    const live = (await this.#members?.live(name)) ?? [];
    const serving = live.filter(({ isDraining }) => !isDraining);
    const urls = serving.flatMap(({ url }) =>
      url !== null && isReachable(url, this.#resources) ? [url] : [],
    );
    return [...new Set(urls)];
  }

  /** Warns if other nodes look for this service, but cannot reach it. */
  #warnUnreachable(url: string): void {
    const { config, elsewhere = [], logger } = this.#resources;
    const name = this.#service;
    if (elsewhere.length === 0 || config.services[name]) return;
    logger.warn(
      `${name} is at ${url}, where other machines cannot call it. Set ${name}.host or SVC_${name.toUpperCase()}_HOST to an address of this machine, such as 0.0.0.0.`,
    );
  }
}

const isCluster = ({ cluster, store }: PlatformConfig): boolean => cluster.enabled && usesPostgres(store);

function configuredUrls({ services }: PlatformConfig, elsewhere: readonly ServiceName[]): Urls {
  const urls = elsewhere.flatMap((name) => {
    const url = services[name]?.url;
    return url === undefined ? [] : [[name, [new URL(url).origin]] as const];
  });
  return Object.fromEntries(urls);
}
