import { setTimeout as sleep } from 'node:timers/promises';
import { provisionWebhook } from '../../src/contracts/index.ts';
import { createClient } from '../../src/http/index.ts';
import { ADMIN_TOKEN } from './gateway.ts';
import { SERVED_BY } from './haproxy.ts';
import { LEDGER_PLUGIN, type LedgerRun, sendToLedger } from './ledger.ts';

const RETRY_MS = 50;
/** Every tenth id is sent once more after it was acknowledged, and every fourth goes to the sync webhook. */
const DUPLICATE_EVERY = 10;
const SYNC_EVERY = 4;

export type LedgerSecrets = Record<'sync' | 'async', string>;

export async function ledgerSecrets(url: string): Promise<LedgerSecrets> {
  const api = createClient({ url, peer: 'gateway' });
  const provision = async (event: string): Promise<string> => {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const body = { pluginId: LEDGER_PLUGIN as never, event };
    return (await api.call(provisionWebhook, { body }, { headers })).secret;
  };
  return { sync: await provision('sync'), async: await provision('async') };
}

/** Senders that send each delivery again until it is acknowledged, as real senders do. */
export class LedgerLoad {
  readonly acknowledged = new Set<string>();
  /** Number of answers by status, or by the code of a connection error. */
  readonly outcomes: Record<string, number> = {};
  /** Answers 503 of a gateway without Retry-After. */
  withoutRetryAfter = 0;
  /** Number of deliveries that were acknowledged as new although an earlier answer acknowledged them. */
  acceptedTwice = 0;
  readonly #target: string;
  readonly #secrets: LedgerSecrets;
  readonly #sending: Promise<unknown>;
  #next = 0;
  #isOver = false;
  #onAcknowledged: (() => void)[] = [];

  constructor(target: string, secrets: LedgerSecrets, senders: number) {
    this.#target = target;
    this.#secrets = secrets;
    this.#sending = Promise.all(Array.from({ length: senders }, () => this.#send()));
  }

  /** Resolves when a delivery is acknowledged after the call. */
  nextAcknowledged(): Promise<void> {
    return new Promise((resolve) => this.#onAcknowledged.push(resolve));
  }

  /** Resolves when every delivery that was begun is acknowledged. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#sending;
  }

  async #send(): Promise<void> {
    while (!this.#isOver) {
      const n = this.#next++;
      const event = n % SYNC_EVERY === 0 ? 'sync' : 'async';
      const id = `${event}-${n}`;
      await this.#sendUntilAcknowledged(event, id);
      if (n % DUPLICATE_EVERY !== 0) continue;
      if ((await this.#sendUntilAcknowledged(event, id)) !== 'duplicate') this.acceptedTwice++;
    }
  }

  async #sendUntilAcknowledged(event: 'sync' | 'async', id: string): Promise<string | undefined> {
    for (;;) {
      try {
        const secret = this.#secrets[event];
        const { status, headers, body } = await sendToLedger(this.#target, {
          event,
          secret,
          payload: { id },
        });
        this.#count(String(status));
        if (status < 300) {
          this.acknowledged.add(id);
          for (const resolve of this.#onAcknowledged.splice(0)) resolve();
          return body.status;
        }
        const isByGateway = headers.has(SERVED_BY);
        if (status === 503 && isByGateway && !headers.has('retry-after')) this.withoutRetryAfter++;
        if (status < 500) throw new Error(`A delivery was answered with ${status}: ${JSON.stringify(body)}`);
      } catch (error) {
        const cause = (error as { cause?: { code?: string } }).cause;
        if (!cause?.code && (error as Error).name !== 'TimeoutError') throw error;
        this.#count(cause?.code ?? 'timeout');
      }
      await sleep(RETRY_MS);
    }
  }

  #count(outcome: string): void {
    this.outcomes[outcome] = (this.outcomes[outcome] ?? 0) + 1;
  }
}

export interface LedgerJudgement {
  /** Acknowledged ids without a run. */
  lost: string[];
  /** Ids of async deliveries that were accepted as two deliveries. */
  acceptedTwice: string[];
  /** Deliveries that one process ran twice. */
  ranTwiceInOneProcess: string[];
  /** Number of deliveries that a second process ran again, because the first was interrupted. */
  repeated: number;
}

/** Compares the acknowledged ids with the runs of the handler. */
export function judgeLedger(acknowledged: ReadonlySet<string>, runs: readonly LedgerRun[]): LedgerJudgement {
  const byId = Map.groupBy(runs, ({ id }) => id);
  const byDelivery = Map.groupBy(runs, ({ webhookId }) => webhookId);
  const hasRepeats = (values: readonly string[]): boolean => new Set(values).size < values.length;
  return {
    lost: [...acknowledged].filter((id) => !byId.has(id)),
    acceptedTwice: [...byId].flatMap(([id, ofId]) =>
      id.startsWith('async') && new Set(ofId.map(({ webhookId }) => webhookId)).size > 1 ? [id] : [],
    ),
    ranTwiceInOneProcess: [...byDelivery].flatMap(([webhookId, of]) =>
      hasRepeats(of.map(({ generation }) => generation)) ? [webhookId] : [],
    ),
    repeated: [...byDelivery.values()].filter((of) => of.length > 1).length,
  };
}
