import { z } from 'zod';
import { EventName, HEADERS, PluginId } from '../../../contracts/index.ts';
import { messageOf } from '../../../kit/errors.ts';
import { defineCommand, streamed } from '../../define-command.ts';
import { deliveryLine } from './delivery-text.ts';
import { followDeliveries, type StreamedDelivery } from './follow.ts';
import { parseHeader } from './header-args.ts';

/** A program under a debugger may take its time. */
const FORWARD_TIMEOUT_MS = 60_000;
/** Nothing that was not authentic, and nothing twice, reaches the program. */
const NOT_FORWARDED = new Set(['refused', 'challenge', 'duplicate']);
const MASKED = '[masked]';
/** Headers of the connection to the gateway, which our own connection to the program has itself. */
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
  summary: 'Forward each authentic delivery to a program on this machine, until Ctrl-C',
  example: 'svc webhooks listen --forward http://localhost:3000/hooks',
  streams: 'always',
  idField: 'webhookId',
  args: z.object({
    forward: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe('where to send them; without it they are shown only'),
    header: z
      .array(z.string())
      .default([])
      .describe("a further header to forward with, 'name: value', such as a secret; may be repeated"),
    plugin: PluginId.optional().describe('those of one plugin'),
    event: EventName.optional().describe('those of one event'),
    cursor: z.string().optional().describe('where to go on, as an earlier run said; default: from now on'),
  }),
  async run({ forward, header, ...args }, context) {
    const { ui } = context;
    const given = header.map(parseHeader);
    ui.note(forward ? `Forwarding deliveries to ${forward}` : 'Listening; --forward <url> sends them on.');
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
 * As received, with a signature that the gateway made anew: the one that came is masked in its records, and the program
 * checks ours by the same secret and the same rules.
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
      // The delivery and its signature are for this address alone.
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

/** Throws TypeError for what no header can hold, which a sample may have brought. */
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
