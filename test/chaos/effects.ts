import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/**
 * The outside of all runs. `POST /effects/<run>/<name>` has an effect once for each `Idempotency-Key`; `GET /draw` answers
 * another id each time.
 */
export interface Effects {
  url: string;
  /** The keys under which runs had their effects, by `<run>/<name>`. */
  keys: ReadonlyMap<string, ReadonlySet<string>>;
  /** Names of the effects that a run had. */
  of(run: string): string[];
  readonly requests: number;
}

const SLOWEST_ANSWER_MS = 20;

export async function startEffects(random: () => number): Promise<Effects> {
  const keys = new Map<string, Set<string>>();
  let requests = 0;
  const server = createServer((request, response) => {
    requests++;
    const path = request.url!;
    if (request.method === 'POST') {
      const name = path.slice('/effects/'.length);
      const key = String(request.headers['idempotency-key'] ?? `none ${randomUUID()}`);
      keys.set(name, (keys.get(name) ?? new Set()).add(key));
    }
    request.resume();
    setTimeout(
      () => response.setHeader('content-type', 'application/json').end(JSON.stringify({ id: randomUUID() })),
      random() * SLOWEST_ANSWER_MS,
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    keys,
    of: (run) =>
      [...keys.keys()].filter((name) => name.startsWith(`${run}/`)).map((name) => name.slice(run.length + 1)),
    get requests() {
      return requests;
    },
  };
}
