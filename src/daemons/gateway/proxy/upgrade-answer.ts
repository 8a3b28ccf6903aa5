import type { Duplex } from 'node:stream';
import { DROPPED_FROM_ANSWERS } from './response-headers.ts';
import type { UpgradeAnswer } from './upstream/index.ts';

/** Maximum time for the body of a refusal. Upstreams may keep the connection open after it. */
const REFUSAL_TIMEOUT_MS = 2000;

/** Headers that are removed from a refusal. Unlike other responses, it keeps the upstream's `transfer-encoding`. */
const DROPPED_FROM_REFUSALS = new Set(
  [...DROPPED_FROM_ANSWERS].filter((name) => name !== 'transfer-encoding'),
);

/** Sends the upstream's 101 response to the client. */
export function acceptUpgrade(client: Duplex, answer: UpgradeAnswer, requestId: string): void {
  const own = ['x-request-id', requestId, 'connection', 'Upgrade', 'upgrade', 'websocket'];
  client.write(clientHead(answer, DROPPED_FROM_ANSWERS, own), 'latin1');
}

/** Sends a response other than 101 to the client, with its body, and ends the connection. */
export function relayRefusal(client: Duplex, answer: UpgradeAnswer, requestId: string): void {
  const own = ['x-request-id', requestId, 'connection', 'close'];
  client.write(clientHead(answer, DROPPED_FROM_REFUSALS, own), 'latin1');
  client.write(answer.rest);
  answer.socket.on('error', () => client.destroy());
  client.on('error', () => answer.socket.destroy()).on('close', () => answer.socket.destroy());
  answer.socket.setTimeout(REFUSAL_TIMEOUT_MS, () => answer.socket.destroy());
  answer.socket.pipe(client);
}

/**
 * Builds the client's head: the upstream's without the headers in `dropped`, and those of the gateway in `own`, a flat
 * list.
 */
function clientHead(
  { statusLine, headers }: UpgradeAnswer,
  dropped: ReadonlySet<string>,
  own: readonly string[],
): string {
  const kept = headers.filter((line) => !dropped.has(line.slice(0, line.indexOf(':')).toLowerCase()));
  for (let i = 0; i < own.length; i += 2) kept.push(`${own[i]}: ${own[i + 1]}`);
  return `${statusLine}\r\n${kept.join('\r\n')}\r\n\r\n`;
}
