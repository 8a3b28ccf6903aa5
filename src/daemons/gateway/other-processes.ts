import { HEADERS, processMetrics, rereadInProcess } from '../../contracts/index.ts';
import { type Client, createClient, serviceHeaders } from '../../http/index.ts';
import { isOfNode } from '../../kit/files/instance-id.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import type { MetricsSnapshot } from '../../kit/telemetry/metrics.ts';
import { seconds } from '../../kit/time/duration.ts';
import type { Membership } from '../membership/membership.ts';

export interface OtherProcessesDeps {
  /** Id of the node. */
  node: string;
  membership: Pick<Membership, 'others'>;
  internalSecret: string;
  logger: Logger;
}

/** Much longer than a reload of plugins takes, so that only a hanging process exceeds the limit. */
const TIMEOUT_MS = seconds(5);

/** Calls the gateway processes that share the port with this process. */
export class OtherProcesses {
  readonly #deps: OtherProcessesDeps;

  constructor(deps: OtherProcessesDeps) {
    this.#deps = deps;
  }

  /**
   * Settles once the other processes have reloaded the plugins. Never rejects, because each process also polls for
   * plugin changes.
   */
  async reread(): Promise<void> {
    await this.#each((client) => client.call(rereadInProcess));
  }

  /** Returns the metrics of each other process that answers. */
  async metrics(): Promise<MetricsSnapshot[]> {
    const replies = await this.#each((client) => client.call(processMetrics));
    return replies.map(({ metrics }) => metrics as MetricsSnapshot);
  }

  async #each<Reply>(call: (client: Client) => Promise<Reply>): Promise<Reply[]> {
    const { membership, node, logger } = this.#deps;
    const others = await membership.others();
    const urls = others.flatMap(({ instance, url }) => (url && isOfNode(instance, node) ? [url] : []));
    const replies = await Promise.allSettled(urls.map((url) => call(this.#clientOf(url))));
    return replies.flatMap((reply) => {
      if (reply.status === 'fulfilled') return [reply.value];
      logger.warn('Another gateway process of this node did not answer', { error: reply.reason });
      return [];
    });
  }

  #clientOf(url: string): Client {
    const { internalSecret } = this.#deps;
    const headers = () => ({ [HEADERS.internalSecret]: internalSecret, ...serviceHeaders(internalSecret) });
    return createClient({ url, peer: 'gateway', headers, timeoutMs: TIMEOUT_MS });
  }
}
