import {
  type EventName,
  type PluginId,
  streamDeliveries,
  type WebhookDelivery,
} from '../../../contracts/index.ts';
import type { CommandContext } from '../../context.ts';
import { followEvents } from '../../event-stream.ts';
import { interruption } from '../../interruption.ts';

/** A delivery as streamed, with headers and body. */
export interface StreamedDelivery extends WebhookDelivery {
  headers: Array<[string, string]>;
  body: string | null;
  bodyEncoding: 'utf8' | 'base64';
  /** Headers with a fresh signature, if `sign` was set. Null if the delivery cannot be signed. */
  signature?: Record<string, string> | null;
}

export interface FollowDeliveries {
  plugin?: PluginId | undefined;
  event?: EventName | undefined;
  cursor?: string | undefined;
  /** Requests headers with a fresh signature for each delivery. */
  sign?: boolean;
  /**
   * Callback that is called for each delivery, in order. The next delivery waits until the returned promise settles.
   */
  take(delivery: StreamedDelivery): void | Promise<void>;
  /** Callback that is called with the final state of a delivery that was still in progress when `take` was called. */
  ended?(delivery: StreamedDelivery): void;
}

/**
 * Follows deliveries until Ctrl-C. After a lost connection, continues with the next delivery. Resolves with the exit
 * code.
 */
export async function followDeliveries(
  context: CommandContext,
  { plugin, event, cursor, sign = false, take, ended }: FollowDeliveries,
): Promise<number> {
  const { ui } = context;
  const { signal, exitCode } = interruption();
  const last = await followEvents(context, {
    path: streamDeliveries.path,
    query: { pluginId: plugin, event, sign: sign ? '1' : undefined },
    after: cursor,
    signal,
    async take({ event: kind, data }) {
      if (kind === 'ended') ended?.(JSON.parse(data) as StreamedDelivery);
      if (kind === 'delivery') await take(JSON.parse(data) as StreamedDelivery);
    },
    onLost: (why) =>
      ui.warnOf(why, (reason, { red }) =>
        red.bold(`DISCONNECTED: ${reason}. Reconnecting; no deliveries are lost.`),
      ),
    onReconnect: () => ui.warnOf('Reconnected; catching up.', (text, { green }) => green.bold(text)),
  });
  if (last !== undefined) ui.noteOf(last, (cursor) => `Resume from here with --cursor ${cursor}`);
  return exitCode();
}
