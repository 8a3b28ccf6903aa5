import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { quantile } from './result.ts';

export interface PacedOptions {
  port: number;
  connections: number;
  perSecond: number;
  durationMs: number;
  request: () => string;
}

export interface PacedReport {
  p50Ms: number;
  p99Ms: number;
}

/** Time for responses still outstanding after the last request. */
const MAX_LATE_MS = 5000;

/**
 * Sends at a fixed rate, independent of responses, and measures from the moment a request was due, so that a stalling
 * server is charged for all requests it delays.
 */
export async function pacedLoad(options: PacedOptions): Promise<PacedReport> {
  const { connections, perSecond, durationMs, port, request } = options;
  const sockets = await Promise.all(Array.from({ length: connections }, () => opened(port)));
  const times: number[] = [];
  const due: number[][] = sockets.map(() => []);
  sockets.forEach((socket, index) => {
    let pending = '';
    socket.setEncoding('latin1').on('data', (text) => {
      pending += text;
      for (let end = endOfAnswer(pending); end !== -1; end = endOfAnswer(pending)) {
        pending = pending.slice(end);
        times.push(performance.now() - due[index]!.shift()!);
      }
    });
  });
  const startedAt = performance.now();
  let sent = 0;
  await new Promise<void>((resolve) => {
    const tick = (): void => {
      const now = performance.now() - startedAt;
      if (now >= durationMs) {
        resolve();
        return;
      }
      for (; sent < (now / 1000) * perSecond; sent++) {
        const at = sent % connections;
        due[at]!.push(startedAt + (sent / perSecond) * 1000);
        sockets[at]!.write(request());
      }
      setImmediate(tick);
    };
    tick();
  });
  const outstanding = (): number[] => due.flat();
  const lateAt = performance.now() + MAX_LATE_MS;
  while (outstanding().length > 0 && performance.now() < lateAt) await sleep(10);
  // Unanswered requests count with the time so far; otherwise a server that drops requests would look fast.
  for (const at of outstanding()) times.push(performance.now() - at);
  for (const socket of sockets) socket.destroy();
  return { p50Ms: quantile(times, 0.5), p99Ms: quantile(times, 0.99) };
}

function opened(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => resolve(socket));
    socket.on('error', reject);
  });
}

function endOfAnswer(text: string): number {
  const head = text.indexOf('\r\n\r\n');
  if (head === -1) return -1;
  const end = head + 4 + Number(/\r\ncontent-length: ?(\d+)/i.exec(text.slice(0, head + 2))?.[1] ?? 0);
  return text.length < end ? -1 : end;
}
