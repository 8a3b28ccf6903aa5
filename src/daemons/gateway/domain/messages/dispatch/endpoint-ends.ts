import { DISABLE_AFTER_DAYS } from '../../../../../contracts/index.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import type {
  MessageStore,
  OutgoingEndpointStore,
  StoredEndpoint,
} from '../../../../../store/ports/index.ts';
import type { EndpointRegistry } from '../endpoint-registry.ts';

export interface EndpointEndsDeps {
  endpoints: Pick<OutgoingEndpointStore, 'disable' | 'read'>;
  messages: Pick<MessageStore, 'endUnfinished'>;
  registry: Pick<EndpointRegistry, 'changed' | 'reread'>;
  clock: Clock;
  logger: Logger;
}

/** Deliveries that end in one write. */
const CHUNK = 500;

const DISABLED = {
  gone: 'The endpoint answered 410, so it was disabled',
  failures: `All attempts failed for ${DISABLE_AFTER_DAYS} days, so the endpoint was disabled`,
  operator: 'The endpoint is disabled',
} as const;

/** Disables endpoints, and ends the unfinished deliveries of disabled and deleted ones. */
export class EndpointEnds {
  readonly #deps: EndpointEndsDeps;
  readonly #ending = new Map<string, Promise<void>>();
  readonly #again = new Set<string>();
  #isClosed = false;

  constructor(deps: EndpointEndsDeps) {
    this.#deps = deps;
  }

  disable(endpoint: StoredEndpoint, reason: 'gone' | 'failures'): void {
    this.#track(`disable ${endpoint.id}`, () => this.#disable(endpoint, reason));
  }

  /** Ends the unfinished deliveries of an endpoint, unless the store says that it is enabled. */
  end(id: string): void {
    if (this.#ending.has(id)) this.#again.add(id);
    else this.#track(id, () => this.#end(id));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#ending.values());
  }

  #track(key: string, work: () => Promise<void>): void {
    if (this.#isClosed || this.#ending.has(key)) return;
    const done = work()
      .catch((error: unknown) => {
        this.#deps.logger.warn('Deliveries of an endpoint could not be ended', { error });
      })
      .finally(() => {
        this.#ending.delete(key);
        if (this.#again.delete(key)) this.end(key);
      });
    this.#ending.set(key, done);
  }

  async #disable(
    { id, namespaceId, failingSince }: StoredEndpoint,
    reason: 'gone' | 'failures',
  ): Promise<void> {
    const { endpoints, registry, clock, logger } = this.#deps;
    if (!(await endpoints.disable(id, reason, clock.now()))) return;
    logger.diagnostic(
      {
        domain: 'messages',
        event: 'messages.endpoint_disabled',
        level: 'warn',
        reasonCode: 'ENDPOINT_DISABLED',
        message: `The endpoint ${id} is disabled: ${reason === 'gone' ? 'it answered 410' : `all attempts failed for ${DISABLE_AFTER_DAYS} days`}`,
        outcome: 'degraded',
        evidence: { endpointId: id, reason, failingSince },
      },
      { tenantId: namespaceId },
    );
    await registry.changed(id);
  }

  async #end(id: string): Promise<void> {
    const { endpoints, messages, registry, clock } = this.#deps;
    const [endpoint] = await endpoints.read([id]);
    // Another process may have created or enabled it a moment ago.
    if (endpoint && endpoint.disabledReason === null) return registry.reread([id]);
    const status = endpoint ? ('dead' as const) : ('cancelled' as const);
    const error = endpoint ? DISABLED[endpoint.disabledReason!] : 'The endpoint was deleted';
    const end = { status, error, limit: CHUNK };
    while (!this.#isClosed && (await messages.endUnfinished(id, { ...end, at: clock.now() })) === CHUNK);
  }
}
