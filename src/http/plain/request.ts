import { LIMITS } from '../../contracts/index.ts';

/** The head of a POST, as node:http would have read it. */
export interface PlainHead {
  /** The request target: a path with its query. */
  url: string;
  /** node's flat list: names and values as sent. */
  rawHeaders: string[];
  /** Where the body begins, and where the request ends, in bytes; what follows is the next one's. */
  bodyStart: number;
  end: number;
}

/** Larger ones are node:http's, which reads a body as a stream. */
const LARGEST_BYTES = 64 * 1024;
/** Well below what node:http refuses, so that no request is taken here that it would not take. */
const LONGEST_HEAD = LIMITS.headerBytes / 2;
const HEAD_END = '\r\n\r\n';

const REQUEST_LINE = /^POST (\/[\w\-.~%@/:?=&+,]*) HTTP\/1\.1\r\n/;
/** At most one blank around a value, and visible ASCII in it: nothing here can be read in two ways, and no input makes it go back far. */
const HEADER = /([\w!#$%&'*+\-.^`|~]+): ?([!-~](?:[ -~]*[!-~])?)\r\n/y;
const LENGTH = /^(?:0|[1-9]\d{0,5})$/;

/**
 * Reads the head of a POST in its plainest form: a path in usual characters, HTTP/1.1, one Host, a body of a said length or
 * none, a connection that stays. Of such a request all parsers think the same. Undefined for every other, and while the
 * head is not whole: those are left to node:http.
 */
export function readPlainHead(bytes: Buffer): PlainHead | undefined {
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd === -1 || headEnd > LONGEST_HEAD) return undefined;
  const head = bytes.toString('latin1', 0, headEnd + 2);
  const line = REQUEST_LINE.exec(head);
  if (!line) return undefined;
  const rawHeaders: string[] = [];
  const bodyBytes = readHeaders(head, line[0].length, rawHeaders);
  const bodyStart = headEnd + HEAD_END.length;
  const end = bodyStart + bodyBytes;
  return bodyBytes === -1 || end > LARGEST_BYTES ? undefined : { url: line[1]!, rawHeaders, bodyStart, end };
}

/** Fills the list; answers how many bytes the body has, -1 where that or anything else is for node:http to judge. */
function readHeaders(head: string, start: number, rawHeaders: string[]): number {
  let hosts = 0;
  let bodyBytes = -1;
  for (let at = start; at < head.length; at = HEADER.lastIndex) {
    HEADER.lastIndex = at;
    const found = HEADER.exec(head);
    if (!found) return -1;
    const value = found[2]!;
    rawHeaders.push(found[1]!, value);
    switch (framingOf(found[1]!)) {
      case 'host':
        hosts++;
        break;
      case 'length':
        if (bodyBytes !== -1 || !LENGTH.test(value)) return -1;
        bodyBytes = Number(value);
        break;
      case 'connection':
        if (value.toLowerCase() !== 'keep-alive') return -1;
        break;
      case 'other':
        return -1;
      default:
    }
  }
  if (hosts !== 1) return -1;
  return bodyBytes === -1 ? 0 : bodyBytes;
}

/** What a header says of the message or the connection rather than of what is asked. */
function framingOf(name: string): 'host' | 'length' | 'connection' | 'other' | undefined {
  switch (name.length) {
    case 2:
      return name.toLowerCase() === 'te' ? 'other' : undefined;
    case 4:
      return name.toLowerCase() === 'host' ? 'host' : undefined;
    case 6:
      return name.toLowerCase() === 'expect' ? 'other' : undefined;
    case 7: {
      const lower = name.toLowerCase();
      return lower === 'upgrade' || lower === 'trailer' ? 'other' : undefined;
    }
    case 10: {
      const lower = name.toLowerCase();
      if (lower === 'connection') return 'connection';
      return lower === 'keep-alive' ? 'other' : undefined;
    }
    case 14:
      return name.toLowerCase() === 'content-length' ? 'length' : undefined;
    case 16:
      return name.toLowerCase() === 'proxy-connection' ? 'other' : undefined;
    case 17:
      return name.toLowerCase() === 'transfer-encoding' ? 'other' : undefined;
    default:
      return undefined;
  }
}
