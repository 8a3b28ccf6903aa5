import type { WebhookRotation } from '../../../../../contracts/index.ts';
import type { DeliveryRecord, SecretKey, WebhookInbox } from '../../../../../store/ports/index.ts';
import { secretUsed } from '../receive/step-log.ts';
import type { WebhookTargets } from '../receive/targets.ts';
import type { WebhookSecrets } from '../verify/secrets.ts';

/** Maximum number of deliveries that one report reads. */
const MAX_READ = 2000;
const PAGE = 500;
const MAX_SENDERS = 50;

export interface RotationDeps {
  inbox: Pick<WebhookInbox, 'list'>;
  secrets: Pick<WebhookSecrets, 'list'>;
  targets: Pick<WebhookTargets, 'require'>;
}

/**
 * Reports which senders use the current secret of a webhook since its rotation.
 * @spec docs/webhooks.md "Provision and rotate"
 */
export class WebhookRotations {
  readonly #deps: RotationDeps;

  constructor(deps: RotationDeps) {
    this.#deps = deps;
  }

  /** Throws PLUGIN_NOT_FOUND or WEBHOOK_NOT_FOUND for an undeclared webhook. */
  async report(key: SecretKey): Promise<WebhookRotation> {
    const { secrets, targets } = this.#deps;
    targets.require(key.pluginId, key.event, key.instanceId);
    const records = await secrets.list(key.namespaceId);
    const secret = records.find((record) => isSame(record, key));
    if (!secret) return { rotatedAt: null, previousExpiresAt: null, ...NONE };
    const { rotatedAt, previousExpiresAt } = secret;
    return { rotatedAt, previousExpiresAt, ...(await this.#count(key, rotatedAt)) };
  }

  async #count(key: SecretKey, since: number): Promise<Counts> {
    const senders = new Map<string, WebhookRotation['senders'][number]>();
    const counts = { current: 0, previous: 0 };
    const { complete } = await this.#read(key, since, (record) => {
      const used = record.origin === 'sender' && isSame(record, key) ? secretUsed(record.steps) : undefined;
      if (!used) return;
      counts[used]++;
      // Deliveries are read newest first, so the first one of a sender is its latest.
      const sender = senders.get(record.source) ?? newSender(record, used);
      sender[used]++;
      senders.set(record.source, sender);
    });
    const latest = [...senders.values()].sort((a, b) => b.previous - a.previous).slice(0, MAX_SENDERS);
    return { ...counts, complete, senders: latest };
  }

  async #read(
    { namespaceId, pluginId, event }: SecretKey,
    since: number,
    onRecord: (record: DeliveryRecord) => void,
  ): Promise<{ complete: boolean }> {
    let before: Parameters<WebhookInbox['list']>[1]['before'];
    for (let read = 0; read < MAX_READ; read += PAGE) {
      const filter = { pluginId, event, since, before, limit: PAGE };
      const { items, next } = await this.#deps.inbox.list(namespaceId, filter);
      for (const record of items) onRecord(record);
      if (!next) return { complete: true };
      before = next;
    }
    return { complete: false };
  }
}

type Counts = Omit<WebhookRotation, 'rotatedAt' | 'previousExpiresAt'>;
const NONE: Counts = { current: 0, previous: 0, complete: true, senders: [] };

function newSender({ source, receivedAt }: DeliveryRecord, latest: 'current' | 'previous') {
  return { source, current: 0, previous: 0, latest, latestAt: receivedAt };
}

function isSame(a: Omit<SecretKey, 'namespaceId'>, b: SecretKey): boolean {
  return a.pluginId === b.pluginId && a.event === b.event && a.instanceId === b.instanceId;
}
