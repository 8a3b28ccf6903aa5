import {
  type EventName,
  type PluginId,
  streamDeliveries,
  type WebhookDelivery,
} from '../../../contracts/index.ts';
import type { CommandContext } from '../../context.ts';
import { followEvents } from '../../event-stream.ts';
import { interruption } from '../../interruption.ts';

/** A delivery in the stream, with headers and body. */
export interface StreamedDelivery extends WebhookDelivery {
  headers: Array<[string, string]>;
  body: string | null;
  bodyEncoding: 'utf8' | 'base64';
  /** With `sign`: freshly signed headers; null if it cannot be signed. */
  signature?: Record<string, string> | null;
}

export interface FollowDeliveries {
  plugin?: PluginId | undefined;
  event?: EventName | undefined;
  cursor?: string | undefined;
  /** Requests fresh signatures. */
  sign?: boolean;
  /** Called for each delivery in order; the next one waits for it. */
  take(delivery: StreamedDelivery): void | Promise<void>;
  /** Called with the outcome of a delivery that was still open at `take`. */
  ended?(delivery: StreamedDelivery): void;
}

/** Follows until Ctrl-C. Reports disconnects and resumes from the last delivery. Resolves with the exit code. */
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
        red.bold(`DISCONNECTED: ${reason}. Reconnecting; no deliveries are lost.`),
      ),
    back: () => ui.warnOf('Reconnected; catching up.', (text, { green }) => green.bold(text)),
  });
  if (last !== undefined) ui.noteOf(last, (cursor) => `Resume from here with --cursor ${cursor}`);
  return exitCode();
}
