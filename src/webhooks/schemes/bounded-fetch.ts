import { PlatformError } from '../../kit/errors/errors.ts';

const FETCH_TIMEOUT_MS = 5000;
const MAX_FETCHED_BYTES = 256 * 1024;
const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * Fetches a small text. Follows no redirects, so that the host stays the one that was checked. Throws
 * SERVICE_UNAVAILABLE if the text cannot be fetched, because the delivery can then be neither accepted nor refused.
 */
export async function fetchBounded(url: string): Promise<string> {
  const { protocol, hostname } = new URL(url);
  if (protocol !== 'https:' && !(protocol === 'http:' && LOOPBACK.has(hostname)))
    throw new Error(`The URL ${url} must use https.`);
  try {
    const response = await fetch(url, {
      redirect: 'error',
      signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
    });
    if (response.status !== 200) throw new Error(`It answered ${response.status}`);
    return await boundedText(response);
  } catch (cause) {
    throw new PlatformError(
      'SERVICE_UNAVAILABLE',
      'The keys of the sender cannot be fetched now; send the delivery again later.',
      { cause },
    );
  }
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > MAX_FETCHED_BYTES) throw new Error(`It is larger than ${MAX_FETCHED_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
