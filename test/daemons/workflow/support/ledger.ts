import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface LedgerEntry {
  /** The path, without its slash. */
  name: string;
  key: string | null;
  at: number;
  body: string;
}

/** A server that notes every request: the side effects of `http` steps. */
export interface Ledger {
  url: string;
  entries: LedgerEntry[];
  /** Requests whose answer is awaited now, and the most there were. */
  open: number;
  mostOpen: number;
  count(name: string): number;
  /** Names of the effects that came under the keys of a run's own steps, by their first time. */
  namesOf(runId: string): string[];
  /** How paths are answered; default: 200 at once. */
  answer(name: string, how: (request: IncomingMessage, response: ServerResponse, nth: number) => void): void;
  /** Ends every connection, answered or not. */
  cut(): void;
}

export async function startLedger(): Promise<Ledger> {
  const answers = new Map<string, Parameters<Ledger['answer']>[1]>();
  const counts = new Map<string, number>();
  const ledger: Ledger = {
    url: '',
    entries: [],
    open: 0,
    mostOpen: 0,
    count: (name) => counts.get(name) ?? 0,
    namesOf: (runId) => [
      ...new Set(ledger.entries.filter(({ key }) => key?.startsWith(`${runId}/`)).map(({ name }) => name)),
    ],
    answer: (name, how) => answers.set(name, how),
    cut: () => server.closeAllConnections(),
  };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const name = request.url!.slice(1);
    const key = (request.headers['idempotency-key'] as string | undefined) ?? null;
    counts.set(name, ledger.count(name) + 1);
    ledger.entries.push({ name, key, at: performance.now(), body: Buffer.concat(chunks).toString() });
    ledger.mostOpen = Math.max(ledger.mostOpen, ++ledger.open);
    response.on('close', () => ledger.open--);
    const how = answers.get(name.split('/')[0]!);
    if (how) how(request, response, ledger.count(name));
    else response.setHeader('content-type', 'application/json').end(JSON.stringify({ ok: true }));
  });
  // A connection that is closed here just as a request comes in would look like a fault of the network.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    ledger.cut();
    server.close();
  });
  ledger.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return ledger;
}

/** What lets `http` steps reach the ledger. */
export const LEDGER_CONFIG = { workflow: { httpAllow: ['127.0.0.1'] } };
