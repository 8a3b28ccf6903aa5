import type { Duplex } from 'node:stream';
import { DROPPED_FROM_ANSWERS } from './response-headers.ts';
import type { UpgradeAnswer } from './upstream/index.ts';

/**
 * Idle timeout for reading the body of a response that rejects an upgrade. The timeout is needed because upstreams can
 * keep the connection open after the body.
 */
const REFUSAL_TIMEOUT_MS = 2000;

/**
 * Headers that are not forwarded with a response that rejects an upgrade. `transfer-encoding` is forwarded, because the
 * body is not decoded.
 */
const DROPPED_FROM_REFUSALS = new Set(
  [...DROPPED_FROM_ANSWERS].filter((name) => name !== 'transfer-encoding'),
);

/** Sends the upstream's 101 response to the client. */
export function acceptUpgrade(client: Duplex, answer: UpgradeAnswer, requestId: string): void {
  const own = ['x-request-id', requestId, 'connection', 'Upgrade', 'upgrade', 'websocket'];
  client.write(clientHead(answer, DROPPED_FROM_ANSWERS, own), 'latin1');
}

/** Sends the upstream's rejection of an upgrade to the client and ends the connection. */
export function relayRefusal(client: Duplex, answer: UpgradeAnswer, requestId: string): void {
  const own = ['x-request-id', requestId, 'connection', 'close'];
  client.write(clientHead(answer, DROPPED_FROM_REFUSALS, own), 'latin1');
  client.write(answer.rest);
  answer.socket.on('error', () => client.destroy());
  client.on('error', () => answer.socket.destroy()).on('close', () => answer.socket.destroy());
  answer.socket.setTimeout(REFUSAL_TIMEOUT_MS, () => answer.socket.destroy());
  answer.socket.pipe(client);
}

/** Builds the response head. `own` is a flat list of names and values of headers that the gateway adds. */
function clientHead(
  { statusLine, headers }: UpgradeAnswer,
  dropped: ReadonlySet<string>,
  own: readonly string[],
): string {
  const kept = headers.filter((line) => !dropped.has(line.slice(0, line.indexOf(':')).toLowerCase()));
  for (let i = 0; i < own.length; i += 2) kept.push(`${own[i]}: ${own[i + 1]}`);
  return `${statusLine}\r\n${kept.join('\r\n')}\r\n\r\n`;
}
