import { z } from 'zod';
import { EventName, HEADERS, PluginId } from '../../../contracts/index.ts';
import { messageOf } from '../../../kit/errors/errors.ts';
import { defineCommand, streamed } from '../../define-command.ts';
import { deliveryLine } from './delivery-text.ts';
import { followDeliveries, type StreamedDelivery } from './follow-deliveries.ts';
import { parseHeader } from './header-args.ts';

/** Time limit of a forwarded request. The limit is long because the local program might be paused in a debugger. */
const FORWARD_TIMEOUT_MS = 60_000;
/** Deliveries with these statuses are not forwarded to the local program. */
const NOT_FORWARDED = new Set(['refused', 'challenge', 'duplicate']);
const MASKED = '[masked]';
/** Headers that belong to the connection of the sender and must not be forwarded. */
const CONNECTION_HEADERS = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** @spec docs/webhooks.md "Listen" */
export const listen = defineCommand({
  name: 'webhooks listen',
  summary: 'Forward authentic deliveries to a local program until Ctrl-C',
  example: 'svc webhooks listen --forward http://localhost:3000/hooks',
  streams: 'always',
  idField: 'webhookId',
  args: z.object({
    forward: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe('URL to forward to; default: only show deliveries'),
    header: z.array(z.string()).default([]).describe("additional header, 'name: value'; may be repeated"),
    plugin: PluginId.optional().describe('only deliveries to this plugin'),
    event: EventName.optional().describe('only deliveries of this event'),
    cursor: z.string().optional().describe('cursor printed by an earlier run; default: new deliveries only'),
  }),
  async run({ forward, header, ...args }, context) {
    const { ui } = context;
    const given = header.map(parseHeader);
    ui.note(
      forward
        ? `Forwarding deliveries to ${forward}`
        : 'Listening. Use --forward <url> to forward deliveries.',
    );
    const exitCode = await followDeliveries(context, {
      ...args,
      sign: forward !== undefined,
      async take(delivery) {
        if (NOT_FORWARDED.has(delivery.status)) return;
        const answer = forward ? await forwardTo(forward, delivery, given) : null;
        ui.record({ delivery, forwarded: answer }, ({ delivery: shown, forwarded }) => {
          const end = forwarded ? `  -> ${answerText(forwarded)}` : '';
          return deliveryLine(shown, ui.out) + end;
        });
      },
    });
    return streamed(exitCode);

    function answerText({ status, error }: Forwarded): string {
      if (error !== undefined) return ui.out.red(error);
      return status! < 400 ? ui.out.green(String(status)) : ui.out.red(String(status));
    }
  },
});

type Forwarded = { status: number; error?: undefined } | { status?: undefined; error: string };

/**
 * Forwards the original request to the local program. The gateway signs the request again, because stored signatures
 * are masked.
 */
async function forwardTo(
  url: string,
  delivery: StreamedDelivery,
  given: ReadonlyArray<[string, string]>,
): Promise<Forwarded> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: forwardedHeaders(delivery, given),
      // A redirect must not leak the delivery and its signature to another address.
      redirect: 'manual',
      body: delivery.body === null ? '' : Buffer.from(delivery.body, delivery.bodyEncoding),
      signal: AbortSignal.timeout(FORWARD_TIMEOUT_MS),
    });
    await response.body?.cancel();
    return { status: response.status };
  } catch (error) {
    const { cause } = error as { cause?: unknown };
    return { error: messageOf(cause instanceof Error && cause.message ? cause : error) };
  }
}

/**
 * Returns the headers to forward. Throws TypeError for an invalid header value, which a sample delivery can contain.
 */
function forwardedHeaders(delivery: StreamedDelivery, given: ReadonlyArray<[string, string]>): Headers {
  const headers = new Headers();
  for (const [name, value] of delivery.headers)
    if (value !== MASKED && !CONNECTION_HEADERS.has(name)) headers.append(name, value);
  for (const [name, value] of Object.entries(delivery.signature ?? {})) headers.set(name, value);
  headers.set(HEADERS.webhookId, delivery.webhookId);
  headers.set('x-webhook-event', delivery.event);
  for (const [name, value] of given) headers.set(name, value);
  return headers;
}
