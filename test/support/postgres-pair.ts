import { setTimeout as sleep } from 'node:timers/promises';
import { PostgresServer } from './postgres.ts';
import { TcpProxy } from './tcp-proxy.ts';

const STANDBYS = 'synchronous_standby_names';
const POLL_MS = 20;

/**
 * A durable primary with one synchronous standby, behind one address. A failover ends the primary, promotes the standby
 * and points the address to it; then a new standby is made.
 */
export class PostgresPair {
  readonly #proxy: TcpProxy;
  #primary: PostgresServer;
  #standby: PostgresServer | undefined;
  /** The primary before the latest failover. */
  #former: PostgresServer | undefined;

  private constructor(primary: PostgresServer, proxy: TcpProxy) {
    this.#primary = primary;
    this.#proxy = proxy;
  }

  static async start(): Promise<PostgresPair> {
    // After a restart of the primary, commits wait until the standby connects again: by default up to 5 s.
    const settings = { wal_retrieve_retry_interval: '200ms' };
    const primary = await PostgresServer.start({ durable: true, settings });
    const pair = new PostgresPair(primary, await TcpProxy.open(primary.address));
    try {
      await pair.addStandby();
    } catch (error) {
      await pair.remove();
      throw error;
    }
    return pair;
  }

  /** The URL that always leads to the primary. */
  get url(): string {
    const url = new URL(this.#primary.url());
    url.port = String(this.#proxy.port);
    return url.href;
  }

  get primary(): PostgresServer {
    return this.#primary;
  }

  /** Copies the primary to a standby. Resolves when commits wait for the standby. */
  async addStandby(): Promise<void> {
    await this.#former?.remove();
    this.#former = undefined;
    this.#standby = await this.#primary.startStandby();
    await this.#set('ANY 1 (*)');
    const states = async () =>
      (await this.#primary.run('select sync_state from pg_stat_replication')).rows.map(
        (row) => row.sync_state,
      );
    while (!(await states()).includes('quorum')) await sleep(POLL_MS);
  }

  /** Ends the primary and promotes the standby. Returns the time of the promotion on the monotonic clock. */
  async failOver(end: 'kill' | 'stop'): Promise<number> {
    this.#former = this.#primary;
    const next = this.#standby!;
    await (end === 'kill' ? this.#former.kill() : this.#former.stop('immediate'));
    this.#proxy.cut();
    await next.promote();
    const promotedAt = performance.now();
    [this.#primary, this.#standby] = [next, undefined];
    // The promoted server has inherited the setting, and without a standby no commit would return.
    await this.#set('');
    this.#proxy.target = next.address;
    this.#proxy.mend();
    return promotedAt;
  }

  async remove(): Promise<void> {
    await this.#proxy.close();
    for (const server of [this.#former, this.#standby, this.#primary]) await server?.remove();
  }

  async #set(standbys: string): Promise<void> {
    await this.#primary.run(`alter system set ${STANDBYS} = '${standbys}'`);
    await this.#primary.run('select pg_reload_conf()');
    const current = async () => (await this.#primary.run(`show ${STANDBYS}`)).rows[0][STANDBYS];
    while ((await current()) !== standbys) await sleep(POLL_MS);
  }
}
