import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceName } from '../contracts/index.ts';
import { nodeHttp } from './node-http.ts';

const POLL_MS = 25;

/** Returns the path of the health endpoint, which differs for the REST service. @spec Health, metrics, specification */
function healthPath(name: ServiceName): string {
  return name === 'rest' ? '/api/v1/health' : '/health';
}

/**
 * Polls the health endpoint until the endpoint answers 200. Rejects with the reason of `signal` when the signal aborts.
 */
export async function waitHealthy(name: ServiceName, url: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    if (await isHealthy(`${url}${healthPath(name)}`, signal)) return;
    signal.throwIfAborted();
    await sleep(POLL_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

function isHealthy(url: string, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const request = nodeHttp().get(url, { agent: false, signal }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on('error', () => resolve(false));
  });
}
