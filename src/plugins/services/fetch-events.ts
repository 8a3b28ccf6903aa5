import { codeOf } from '../../kit/errors/errors.ts';
import type { Analytics } from '../../kit/telemetry/analytics.ts';
import type { PlatformCallContext, PlatformService } from '../execution.ts';
import { eventFields } from './event-fields.ts';
import type { FetchService } from './fetch.ts';

/**
 * Reports one event per call of `ctx.fetch`. Paths and queries are left out, because they can contain secrets. @spec
 * docs/observability.md "Analytics"
 */
export function withFetchEvents({ request }: FetchService, analytics: Analytics): PlatformService {
  return {
    async request(context: PlatformCallContext, args: unknown[]) {
      const startedAt = performance.now();
      const track = (type: string, result: string): void =>
        analytics.trackOften(type, {
          ...eventFields(context.request),
          payload: { ...targetOf(args[0]), result, durationMs: performance.now() - startedAt },
        });
      try {
        const reply = await request(context, args);
        track('fetch.request.completed', String(reply.status));
        return reply;
      } catch (error) {
        track('fetch.request.failed', codeOf(error) ?? 'EXECUTION_ERROR');
        throw error;
      }
    },
  };
}

/** Maximum length of a recorded host name. */
const MAX_HOST_CHARS = 253;
const MAX_METHOD_CHARS = 16;

function targetOf(sent: unknown): { method: string; host: string } {
  const { url, method } = (sent ?? {}) as { url?: unknown; method?: unknown };
  return {
    method: typeof method === 'string' ? method.toUpperCase().slice(0, MAX_METHOD_CHARS) : '',
    host: typeof url === 'string' && URL.canParse(url) ? new URL(url).host.slice(0, MAX_HOST_CHARS) : '',
  };
}
