import { SOURCES_PLUGIN_ID } from '../../../../../contracts/index.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Random } from '../../../../../kit/security/random.ts';
import type { WebhookInbox } from '../../../../../store/ports/index.ts';
import { requireDelivery } from '../../webhooks/admin/deliveries.ts';
import type { Call, Replays } from '../../webhooks/admin/replays.ts';
import { payloadOf } from '../../webhooks/receive/payload.ts';
import type { FanOut } from '../fan-out.ts';
import type { SourceTargets } from '../source-targets.ts';
import type { SourceAdmin } from './source-admin.ts';

export interface SourceReplaysDeps {
  inbox: WebhookInbox;
  admin: Pick<SourceAdmin, 'require'>;
  targets: Pick<SourceTargets, 'of'>;
  replays: Pick<Replays, 'replay'>;
  fanOut: Pick<FanOut, 'replayTo'>;
  random: Random;
}

/** Delivers received requests again, to all destinations of a source or to one. */
export class SourceReplays {
  readonly #deps: SourceReplaysDeps;

  constructor(deps: SourceReplaysDeps) {
    this.#deps = deps;
  }

  /** Throws DELIVERY_NOT_FOUND, NOT_FOUND for an unknown destination, or CONFLICT if it cannot be replayed. */
  async replay(
    namespaceId: string,
    name: string,
    { webhookId, destination }: { webhookId: string; destination?: string | undefined },
    call: Call,
  ): Promise<{ webhookId: string; replayOf: string }> {
    const { inbox, admin, targets, replays, fanOut, random } = this.#deps;
    const entry = admin.require(namespaceId, name);
    const record = await requireDelivery(inbox, namespaceId, webhookId);
    if (record.pluginId !== SOURCES_PLUGIN_ID || record.event !== name || record.instanceId !== '')
      throw new PlatformError('CONFLICT', `${webhookId} is not a delivery that the source ${name} received.`);
    if (destination === undefined) return replays.replay(namespaceId, webhookId, call);
    const target = entry.destinations.get(destination);
    if (!target)
      throw new PlatformError('NOT_FOUND', `The source ${name} has no destination ${destination}.`);
    if (record.body === null)
      throw new PlatformError('CONFLICT', `The body of delivery ${webhookId} was not stored or was pruned.`);
    const ids = { webhookId: random.uuid(), ...call };
    const payload = await payloadOf(targets.of(record), record);
    await fanOut.replayTo(record, payload, target, ids);
    return { webhookId: ids.webhookId, replayOf: webhookId };
  }
}
