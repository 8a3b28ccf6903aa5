import type { OpenApiDocument } from '../../../http/index.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import { seconds } from '../../../kit/time/duration.ts';
import { type DescribedService, mergeOpenApi } from './merge-documents.ts';

/** Source of the OpenAPI description of one service. */
export interface DescriptionSource {
  /** Name of the service, used in `x-svc-unavailable`. */
  name: string;
  fetch(): Promise<OpenApiDocument>;
  isRouted(path: string): boolean;
  tokens: DescribedService['tokens'];
}

export interface MergedDescriptionDeps {
  sources: readonly DescriptionSource[];
  version: string;
  clock: Clock;
  logger: Logger;
}

export type MergedDescription = (own: OpenApiDocument) => Promise<OpenApiDocument>;

/**
 * Cache TTL of the merged description, in ms. The cache limits upstream requests, because clients need no token to
 * request the description.
 */
const FRESH_MS = seconds(5);

/**
 * Returns a function that merges the descriptions of all services. Services that do not respond are omitted and listed
 * in `x-svc-unavailable`.
 */
export function createMergedDescription({
  sources,
  version,
  clock,
  logger,
}: MergedDescriptionDeps): MergedDescription {
  let last: { at: number; fetched: ReturnType<typeof fetchAll> } | undefined;

  async function fetchAll() {
    const services: DescribedService[] = [];
    const unavailable: string[] = [];
    const answers = await Promise.allSettled(sources.map((source) => source.fetch()));
    answers.forEach((answer, index) => {
      const { name, isRouted, tokens } = sources[index]!;
      if (answer.status === 'fulfilled') services.push({ name, isRouted, tokens, document: answer.value });
      else {
        unavailable.push(name);
        logger.warn(`The ${name} service is missing from the merged API description`, {
          error: answer.reason,
        });
      }
    });
    return { services, unavailable };
  }

  return async (own) => {
    const now = clock.monotonic();
    if (!last || now - last.at >= FRESH_MS) last = { at: now, fetched: fetchAll() };
    const { services, unavailable } = await last.fetched;
    // A result with unavailable services is not cached, so the next request queries all services again.
    if (unavailable.length > 0) last = undefined;
    const gateway = { name: 'gateway', document: own, isRouted: () => true, tokens: 'as said' as const };
    const info = { title: 'svc', version, description: 'Everything that clients reach through the gateway.' };
    return mergeOpenApi(info, [gateway, ...services], unavailable);
  };
}
