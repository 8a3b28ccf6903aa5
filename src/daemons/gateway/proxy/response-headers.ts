const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  // The client gets the gateway's own, which is the one the upstream was given.
  'x-request-id',
]);

export interface ResponseHead {
  status: number;
  /** Flat names and values, ready for `writeHead`. */
  headers: string[];
  /** Announced body length; null: unknown. */
  contentLength: number | null;
}

/** What of an upstream's answer goes to the client, in one pass. */
export function responseHead(status: number, upstream: readonly string[], requestId: string): ResponseHead {
  const headers = ['x-request-id', requestId];
  let contentLength: number | null = null;
  let named: Set<string> | undefined;
  for (let i = 0; i < upstream.length; i += 2) {
    const name = upstream[i]!.toLowerCase();
    if (name === 'connection') named = namesIn(upstream[i + 1]!);
    if (HOP_BY_HOP.has(name)) continue;
    if (name === 'content-length') contentLength = Number(upstream[i + 1]);
    headers.push(name, upstream[i + 1]!);
  }
  return { status, headers: named ? without(headers, named) : headers, contentLength };
}

function namesIn(connection: string): Set<string> | undefined {
  if (connection === 'keep-alive' || connection === 'close') return undefined;
  return new Set(
    connection
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  );
}

function without(headers: string[], names: Set<string>): string[] {
  return headers.filter((_, index) => !names.has(headers[index - (index % 2)]!));
}
