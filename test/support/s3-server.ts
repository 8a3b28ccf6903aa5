import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';

/**
 * The part of S3's protocol that the platform speaks, path style, in memory. Signatures (AWS Signature Version 4) and
 * digests of bodies are computed anew and compared, so a client that signs wrongly is refused as by the real one.
 */

export const S3_CREDENTIALS = {
  accessKeyId: 'AKIATESTTESTTEST',
  secretAccessKey: 'test/secret+of/the+bucket',
};
const BUCKET = 'objects';

interface Kept {
  data: Buffer;
  modifiedAt: Date;
}

export interface S3Server {
  endpoint: string;
  bucket: string;
  objects: Map<string, Kept>;
  /** Answers the next requests with this status instead. */
  fail(...statuses: number[]): void;
}

export async function startS3Server(): Promise<S3Server> {
  const objects = new Map<string, Kept>();
  const failures: number[] = [];
  const server = createServer(async (request, response) => {
    const body = await bodyOf(request);
    const fault = signatureFault(request, body);
    const status = failures.shift();
    if (fault) return error(response, 403, fault);
    if (status !== undefined)
      return error(response, status, status === 403 ? 'AccessDenied' : 'InternalError');
    serve(request, response, body, objects);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as { port: number };
  return {
    endpoint: `http://127.0.0.1:${port}`,
    bucket: BUCKET,
    objects,
    fail: (...statuses) => void failures.push(...statuses),
  };
}

function serve(
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
  objects: S3Server['objects'],
): void {
  const url = new URL(request.url!, 'http://s3');
  const [, bucket, ...rest] = url.pathname.split('/').map(decodeURIComponent);
  const key = rest.join('/');
  if (bucket !== BUCKET) error(response, 404, 'NoSuchBucket');
  else if (request.method === 'GET' && key === '') list(response, url.searchParams, objects);
  else if (request.method === 'PUT') {
    objects.set(key, { data: body, modifiedAt: new Date() });
    response.writeHead(200, { etag: `"${md5(body)}"` }).end();
  } else if (request.method === 'DELETE') {
    objects.delete(key);
    response.writeHead(204).end();
  } else give(response, objects.get(key), request.method === 'HEAD');
}

function give(response: ServerResponse, found: Kept | undefined, isHead: boolean): void {
  if (!found) {
    error(response, 404, 'NoSuchKey', isHead);
    return;
  }
  const headers = {
    'content-length': found.data.length,
    'last-modified': found.modifiedAt.toUTCString(),
    etag: `"${md5(found.data)}"`,
  };
  response.writeHead(200, headers).end(isHead ? undefined : found.data);
}

function list(response: ServerResponse, query: URLSearchParams, objects: S3Server['objects']): void {
  const [prefix, after] = [query.get('prefix') ?? '', query.get('start-after') ?? ''];
  const most = Number(query.get('max-keys') ?? 1000);
  const bytes = (text: string) => Buffer.from(text);
  const keys = [...objects.keys()]
    .filter((key) => key.startsWith(prefix) && (after === '' || Buffer.compare(bytes(key), bytes(after)) > 0))
    .sort((a, b) => Buffer.compare(bytes(a), bytes(b)));
  const contents = keys.slice(0, most).map((key) => {
    const { data, modifiedAt } = objects.get(key)!;
    return `<Contents><Key>${xml(key)}</Key><LastModified>${modifiedAt.toISOString()}</LastModified><Size>${data.length}</Size></Contents>`;
  });
  response
    .writeHead(200, { 'content-type': 'application/xml' })
    .end(
      `<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>${BUCKET}</Name><IsTruncated>${keys.length > most}</IsTruncated>${contents.join('')}</ListBucketResult>`,
    );
}

function error(response: ServerResponse, status: number, code: string, isHead = false): void {
  response
    .writeHead(status, { 'content-type': 'application/xml' })
    .end(
      isHead
        ? undefined
        : `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`,
    );
}

/** Undefined when the signature is that of our credentials over this very request. */
function signatureFault(request: IncomingMessage, body: Buffer): string | undefined {
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      request.headers.authorization ?? '',
    );
  if (!match) return 'AccessDenied';
  const [, keyId, date, region, signedHeaders, signature] = match as unknown as string[];
  if (keyId !== S3_CREDENTIALS.accessKeyId) return 'InvalidAccessKeyId';
  const digest = request.headers['x-amz-content-sha256'];
  if (digest !== 'UNSIGNED-PAYLOAD' && digest !== sha256(body)) return 'XAmzContentSHA256Mismatch';
  const url = new URL(request.url!, 'http://s3');
  const query = [...url.searchParams]
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&');
  const headers = signedHeaders!
    .split(';')
    .map((name) => `${name}:${String(request.headers[name]).trim()}\n`);
  const path = request.url!.split('?')[0];
  const canonical = [request.method, path, query, headers.join(''), signedHeaders, digest].join('\n');
  const scope = `${date}/${region}/s3/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', request.headers['x-amz-date'], scope, sha256(canonical)].join('\n');
  const key = [date!, region!, 's3', 'aws4_request'].reduce<Buffer | string>(
    (secret, part) => createHmac('sha256', secret).update(part).digest(),
    `AWS4${S3_CREDENTIALS.secretAccessKey}`,
  );
  const expected = createHmac('sha256', key).update(toSign).digest();
  return timingSafeEqual(expected, Buffer.from(signature!, 'hex')) ? undefined : 'SignatureDoesNotMatch';
}

const sha256 = (data: Buffer | string): string => createHash('sha256').update(data).digest('hex');
const md5 = (data: Buffer): string => createHash('md5').update(data).digest('hex');
const xml = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
