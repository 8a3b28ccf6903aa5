import { connect, type Socket } from 'node:net';
import { quantile } from './result.ts';

export interface LoadOptions {
  host?: string;
  port: number;
  connections: number;
  durationMs: number;
  /** Returns one complete HTTP/1.1 request; called for each, so that ids may differ. */
  request: () => string | Buffer;
}

export interface LoadReport {
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
  answered: number;
  /** Number of responses by status. */
  statuses: Record<string, number>;
}

/**
 * Keeps one request in flight on each of `connections` sockets, and measures from the write to the last byte of the
 * response. Uses bare sockets, because a client library would cost more than the servers. Responses need a Content-Length.
 */
export async function generateLoad(options: LoadOptions): Promise<LoadReport> {
  const latencies: number[] = [];
  const statuses: Record<string, number> = {};
  const startedAt = performance.now();
  const endsAt = startedAt + options.durationMs;
  await Promise.all(
    Array.from({ length: options.connections }, () =>
      keepBusy(options, endsAt, (status, ms) => {
        latencies.push(ms);
        statuses[status] = (statuses[status] ?? 0) + 1;
      }),
    ),
  );
  const seconds = (performance.now() - startedAt) / 1000;
  return {
    perSecond: latencies.length / seconds,
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    answered: latencies.length,
    statuses,
  };
}

function keepBusy(
  { host = '127.0.0.1', port, request }: LoadOptions,
  endsAt: number,
  answered: (status: string, ms: number) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(port, host);
    socket.setNoDelay(true);
    let sentAt = 0;
    let pending = '';
    const send = (): void => {
      sentAt = performance.now();
      socket.write(request());
    };
    socket.on('connect', send);
    socket.on('data', (chunk) => {
      pending = pending === '' ? chunk.toString('latin1') : pending + chunk.toString('latin1');
      const end = endOfResponse(pending);
      if (end === -1 || pending.length < end) return;
      answered(pending.slice(9, 12), performance.now() - sentAt);
      pending = '';
      if (performance.now() < endsAt) send();
      else {
        socket.destroy();
        resolve();
      }
    });
    socket.on('error', reject);
    socket.on('close', () => resolve());
  });
}

function endOfResponse(text: string): number {
  const head = text.indexOf('\r\n\r\n');
  if (head === -1) return -1;
  const length = /\r\ncontent-length: ?(\d+)/i.exec(text.slice(0, head + 2));
  return head + 4 + Number(length?.[1] ?? 0);
}
