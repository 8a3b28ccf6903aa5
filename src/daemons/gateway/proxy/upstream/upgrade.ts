import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { UpstreamTimeoutError } from './client.ts';

export interface UpgradeRequest {
  origin: string;
  path: string;
  /** Flat list of header names and values, without `host`, `connection` and `upgrade`. */
  headers: readonly string[];
  timeoutMs: number;
}

export interface UpgradeAnswer {
  status: number;
  statusLine: string;
  /** Well-formed header lines, each `name: value`. */
  headers: string[];
  /** Bytes that were received after the head. */
  rest: Buffer;
  socket: Socket;
}

const MAX_HEAD_BYTES = 64 * 1024;
const STATUS_LINE = /^HTTP\/1\.1 ([2-5]\d\d|101)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const HEADER = /^[^\s:]+:[\t\x20-\x7e\x80-\xff]*$/;

/** Sends an upgrade request on a new connection. Rejects if no well-formed response arrives within the timeout. */
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
      // Forwarding a malformed line could make the client read one response as two (response splitting).
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
