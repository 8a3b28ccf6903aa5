const SHOWN_HEADERS = new Set([
  'accept',
  'host',
  'content-type',
  'content-length',
  'user-agent',
  'x-request-id',
  'x-trace-id',
  'traceparent',
  'x-svc-namespace',
  'x-github-event',
  'x-github-delivery',
  'x-github-hook-id',
  'x-shopify-topic',
  'webhook-id',
  'webhook-timestamp',
]);

/**
 * Headers as a delivery's record keeps them: JSON pairs. Which header carries the secret differs from webhook
 * to webhook, so only names known to be harmless keep their value.
 */
export function maskHeaders(rawHeaders: readonly string[]): string {
  const shown: Array<[string, string]> = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    shown.push([name, SHOWN_HEADERS.has(name) ? rawHeaders[i + 1]! : '[masked]']);
  }
  return JSON.stringify(shown);
}
