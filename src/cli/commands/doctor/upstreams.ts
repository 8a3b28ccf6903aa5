import { messageOf } from '../../../kit/errors/errors.ts';
import { type CheckTarget, type Fact, failure, fine } from './check.ts';

const CONNECT_TIMEOUT_MS = 3000;

/** Checks that external upstreams of the gateway are reachable. Any HTTP status shows that an upstream is reachable. */
export async function checkUpstreams({ loaded: { config } }: CheckTarget): Promise<Fact[]> {
  const named = Object.entries(config.gateway.upstreams).flatMap(([name, { url }]) =>
    url ? [{ name, url }] : [],
  );
  if (named.length === 0) return [fine('only services of this platform')];
  return Promise.all(
    named.map(async ({ name, url }) => {
      try {
        await fetch(url, {
          method: 'HEAD',
          signal: AbortSignal.timeout(CONNECT_TIMEOUT_MS),
          redirect: 'manual',
        });
        return fine(`${name} answers at ${new URL(url).origin}`);
      } catch (error) {
        const cause = (error as { cause?: unknown }).cause ?? error;
        return failure(
          `The upstream ${name} at ${new URL(url).origin} is unreachable: ${messageOf(cause)}.`,
          `Start it, or set gateway.upstreams.${name}.url.`,
        );
      }
    }),
  );
}
