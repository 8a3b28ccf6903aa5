import { connect as connectPlain, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { UpstreamTimeoutError } from './upstream/index.ts';

export interface UpgradeRequest {
  origin: string;
  path: string;
  /** Flat names and values, without those of the connection. */
  headers: readonly string[];
  timeoutMs: number;
}

export interface UpgradeAnswer {
  status: number;
  statusLine: string;
  /** `name: value` each, well-formed. */
  headers: string[];
  /** What came right behind the head. */
  rest: Buffer;
  socket: Socket;
}

const REFUSAL_MS = 2000;
const MAX_HEAD_BYTES = 64 * 1024;
const STATUS_LINE = /^HTTP\/1\.1 ([2-5]\d\d|101)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const HEADER = /^[^\s:]+:[\t\x20-\x7e\x80-\xff]*$/;

/** Opens a connection of its own to the upstream and asks for the upgrade. Rejects when there is no well-formed answer in time. */
export function requestUpgrade(request: UpgradeRequest): Promise<UpgradeAnswer> {
  const { origin, path, headers, timeoutMs } = request;
  const { protocol, hostname, port, host } = new URL(origin);
  const name = hostname.replace(/^\[|\]$/g, '');
  const secure = protocol === 'https:';
  const target = { host: name, port: Number(port || (secure ? 443 : 80)) };
  const socket = secure
    ? connectTls({ ...target, servername: name })
    : connectPlain({ ...target, noDelay: true });
  let text = `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n`;
  for (let i = 0; i < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
  socket.write(`${text}\r\n`, 'latin1');
  return readAnswer(socket, timeoutMs);
}

function readAnswer(socket: Socket, timeoutMs: number): Promise<UpgradeAnswer> {
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0);
    const timer = setTimeout(() => fail(new UpstreamTimeoutError()), timeoutMs);
    const settle = (): void => {
      clearTimeout(timer);
      socket.off('data', onData).off('error', fail).off('close', onClose);
    };
    function fail(error: Error): void {
      settle();
      socket.destroy();
      reject(error);
    }
    function onClose(): void {
      fail(new Error('It closed the connection instead of answering.'));
    }
    function onData(chunk: Buffer): void {
      bytes = Buffer.concat([bytes, chunk]);
      const end = bytes.indexOf('\r\n\r\n');
      if (end === -1 && bytes.length <= MAX_HEAD_BYTES) return;
      const [statusLine, ...headers] = bytes.toString('latin1', 0, end).split('\r\n');
      const status = end === -1 ? undefined : STATUS_LINE.exec(statusLine!)?.[1];
      // A line that is no header could split the answer in two.
      if (status === undefined || !headers.every((line) => HEADER.test(line))) {
        fail(new Error('Its answer to the upgrade is malformed.'));
        return;
      }
      settle();
      socket.pause();
      resolve({
        status: Number(status),
        statusLine: statusLine!,
        headers,
        rest: bytes.subarray(end + 4),
        socket,
      });
    }
    socket.on('data', onData).on('error', fail).on('close', onClose);
  });
}

/** The upstream's head with the gateway's own headers in place of those that are its to say. */
export function clientHead(
  { statusLine, headers }: UpgradeAnswer,
  dropped: ReadonlySet<string>,
  own: readonly string[],
): string {
  const kept = headers.filter((line) => !dropped.has(line.slice(0, line.indexOf(':')).toLowerCase()));
  for (let i = 0; i < own.length; i += 2) kept.push(`${own[i]}: ${own[i + 1]}`);
  return `${statusLine}\r\n${kept.join('\r\n')}\r\n\r\n`;
}

/** Passes an answer that is no upgrade on as it comes, and ends the connection behind it. */
export function relayRefusal(client: Duplex, answer: UpgradeAnswer, head: string): void {
  client.write(head, 'latin1');
  client.write(answer.rest);
  answer.socket.on('error', () => client.destroy());
  client.on('error', () => answer.socket.destroy()).on('close', () => answer.socket.destroy());
  // An upstream that keeps the connection open after its answer is not waited for.
  answer.socket.setTimeout(REFUSAL_MS, () => answer.socket.destroy());
  answer.socket.pipe(client);
}
