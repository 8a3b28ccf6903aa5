import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { type AnalyticsEvent, listEvents } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors.ts';
import { defineCommand, streamed } from '../../define-command.ts';
import { eventFlags, eventQuery } from './arguments.ts';
import { eventLine } from './event-line.ts';

const POLL_MS = 500;
/** An event is looked for so long after its time: it reaches the store a moment after it happened. */
const LATE_MS = 5000;
const PAGE = 1000;

/** @spec docs/observability.md "Analytics" */
export const tail = defineCommand({
  name: 'events tail',
  summary: 'Show events as they come, until Ctrl-C',
  example: 'svc events tail --type plugin.command.failed',
  args: z.object({
    type: eventFlags.type,
    source: eventFlags.source,
    lines: z.coerce.number().int().min(0).max(1000).default(10).describe('how many earlier ones; default 10'),
  }),
  short: { lines: 'n' },
  async run({ lines, ...flags }, { client, globals, clock, ui }) {
    const query = eventQuery(flags, globals, clock.now());
    const show = (event: AnalyticsEvent): void =>
      ui.line(globals.json ? JSON.stringify(event) : eventLine(event, ui.out));
    // Ids of what was shown, by their times, so that the window's overlap shows nothing twice.
    const shown = new Map<string, number>();
    async function follow(): Promise<void> {
      for (;;) {
        await sleep(POLL_MS);
        const from = clock.now() - LATE_MS;
        const page = await client
          .call(listEvents, { query: { ...query, from: String(from), limit: PAGE } })
          .catch(whenGone);
        for (const event of (page?.items ?? []).reverse()) {
          if (shown.has(event.id)) continue;
          shown.set(event.id, Date.parse(event.ts));
          show(event);
        }
        for (const [id, at] of shown) if (at < from - LATE_MS) shown.delete(id);
      }
    }
    const first = await client.call(listEvents, { query: { ...query, limit: PAGE } });
    for (const event of first.items) shown.set(event.id, Date.parse(event.ts));
    for (const event of first.items.slice(0, lines).reverse()) show(event);
    await follow();
    return streamed(0);
  },
});

/** A restart in between is waited for. */
function whenGone(error: unknown): undefined {
  if (error instanceof PlatformError && ['UPSTREAM_UNAVAILABLE', 'UPSTREAM_TIMEOUT'].includes(error.code))
    return undefined;
  throw error;
}
