import {
  type EventName,
  type PluginId,
  streamDeliveries,
  type WebhookDelivery,
} from '../../../contracts/index.ts';
import type { CommandContext } from '../../context.ts';
import { followEvents } from '../../event-stream.ts';
import { interruption } from '../../interruption.ts';

/** A delivery as the stream brings it: with its headers and body. */
export interface StreamedDelivery extends WebhookDelivery {
  headers: Array<[string, string]>;
  body: string | null;
  bodyEncoding: 'utf8' | 'base64';
  /** With `sign`: headers that prove it anew; null where there can be none. */
  signature?: Record<string, string> | null;
}

export interface FollowDeliveries {
  plugin?: PluginId | undefined;
  event?: EventName | undefined;
  cursor?: string | undefined;
  /** Have each signed anew. */
  sign?: boolean;
  /** Called with each, one after the other; the next waits for it. */
  take(delivery: StreamedDelivery): void | Promise<void>;
  /** The end of one that was still open when `take` got it. */
  ended?(delivery: StreamedDelivery): void;
}

/** Follows until Ctrl-C, says loudly when it is cut off, and goes on where it was. Resolves with the exit code. */
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
    lost: (why) =>
      ui.warnOf(why, (reason, { red }) =>
        red.bold(`DISCONNECTED: ${reason}. Nothing is lost: trying to reach the gateway again.`),
      ),
    back: () => ui.warnOf('Connected again; catching up.', (text, { green }) => green.bold(text)),
  });
  if (last !== undefined) ui.noteOf(last, (cursor) => `Go on from here with --cursor ${cursor}`);
  return exitCode();
}
