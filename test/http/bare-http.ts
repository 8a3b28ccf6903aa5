import { onTestFinished } from 'vitest';
import { createHttp, type Http, type HttpOptions } from '../../src/http/index.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import { silentLogger } from '../../src/kit/telemetry/logger.ts';
import { createMetrics } from '../../src/kit/telemetry/metrics.ts';
import { systemClock } from '../../src/kit/time/clock.ts';

/** The platform's HTTP server without a daemon, listening with what `mount` gives it; closed at the end of the test. */
export async function listenBare(
  mount: (http: Http) => void,
  options: Partial<HttpOptions> = {},
): Promise<{ http: Http; port: number }> {
  const metrics = createMetrics('state', systemClock);
  const http = createHttp({
    service: 'state',
    logger: silentLogger,
    metrics,
    clock: systemClock,
    random: systemRandom(),
    authenticate: () => ({ hostId: 'h', namespaceId: 'n' }) as never,
    ...options,
  });
  mount(http);
  await http.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(async () => {
    metrics.close();
    await http.close();
  });
  return { http, port: (http.server.address() as { port: number }).port };
}
