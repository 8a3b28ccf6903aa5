import { STATUS_CODES, validateHeaderValue } from 'node:http';
import { LIMITS } from '../../contracts/index.ts';
import { systemClock } from '../../kit/clock.ts';

/** As node:http says it. */
const STAYS = `Connection: keep-alive\r\nKeep-Alive: timeout=${LIMITS.keepAliveMs / 1000}\r\n\r\n`;
const ENDS = 'Connection: close\r\n\r\n';

/**
 * The head of an answer with a body, in the flat pairs of node's `writeHead`. Throws for a value that no header can have,
 * as what came from elsewhere could otherwise end the head and begin an answer of its own.
 */
export function answerHead(
  status: number,
  headers: readonly string[],
  bodyBytes: number,
  isLast: boolean,
): string {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`;
  for (let i = 0; i < headers.length; i += 2) {
    validateHeaderValue(headers[i]!, headers[i + 1]!);
    head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  }
  return `${head}content-length: ${bodyBytes}\r\nDate: ${httpDate()}\r\n${isLast ? ENDS : STAYS}`;
}

let second = 0;
let date = '';

function httpDate(): string {
  const now = Math.floor(systemClock.now() / 1000);
  if (now !== second) {
    second = now;
    date = new Date(now * 1000).toUTCString();
  }
  return date;
}
