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
/** What else says how a message is delimited, or what is to become of the connection. */
const OTHER_FRAMING = /\r\n(?:expect|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade):/i;
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
  if (OTHER_FRAMING.test(head)) return -1;
  let hosts = 0;
  let bodyBytes: number | undefined;
  for (let at = start; at < head.length; at = HEADER.lastIndex) {
    HEADER.lastIndex = at;
    const [, name, value] = HEADER.exec(head) ?? [];
    if (name === undefined || value === undefined) return -1;
    rawHeaders.push(name, value);
    if (is(name, 'host')) hosts++;
    else if (is(name, 'content-length')) {
      if (bodyBytes !== undefined || !LENGTH.test(value)) return -1;
      bodyBytes = Number(value);
    } else if (is(name, 'connection') && value.toLowerCase() !== 'keep-alive') return -1;
  }
  return hosts === 1 ? (bodyBytes ?? 0) : -1;
}

/** Whether a header has the name, which is in lower case. */
function is(name: string, wanted: string): boolean {
  return name.length === wanted.length && name.toLowerCase() === wanted;
}
