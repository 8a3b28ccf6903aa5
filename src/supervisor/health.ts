import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceName } from '../contracts/index.ts';
import { nodeHttp } from './node-http.ts';

const POLL_MS = 25;

/** Returns the health path of a service. The REST API has no `/health`. @spec Health, metrics, specification */
function healthPath(name: ServiceName): string {
  return name === 'rest' ? '/api/v1/health' : '/health';
}

/** Resolves when the health path answers 200; rejects with the reason of the signal. */
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
