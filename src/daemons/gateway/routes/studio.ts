import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { acceptsBrotli, type Http } from '../../../http/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { packageRoot } from '../../../kit/files/paths.ts';

const FOLDER = join(packageRoot, 'dist/studio');
const PAGE = 'index.html';

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-cache',
};

/** Serves the files of the studio. Each path without a file is a screen of the single page. @spec docs/studio.md */
export function studioRoutes(http: Http): void {
  const files = new StudioFiles();
  const page = async (request: FastifyRequest, reply: FastifyReply) => {
    reply.headers(PAGE_HEADERS);
    return files.send(PAGE, request, reply);
  };
  http.get('/studio', (_request, reply) => reply.redirect('/studio/', 308));
  http.get('/studio/', page);
  http.get('/studio/*', page);
  http.get<{ Params: { asset: string } }>('/studio/assets/:asset', async (request, reply) => {
    // The name contains a hash of the content, so browsers can keep the file for ever.
    reply.header('cache-control', 'public, max-age=31536000, immutable');
    return files.send(`assets/${request.params.asset}`, request, reply);
  });
}

interface StudioFile {
  plain: Buffer;
  /** The file compressed with Brotli. Undefined if that does not make the file smaller. */
  brotli: Buffer | undefined;
}

/**
 * The built files of the studio. All are read at the first request, so that a new build beside a running gateway does
 * not mix two versions.
 */
class StudioFiles {
  #files: Promise<ReadonlyMap<string, StudioFile>> | undefined;

  async send(name: string, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    this.#files ??= readFiles();
    const files = await this.#files.finally(() => {});
    // A later build is found at the next request.
    if (files.size === 0) this.#files = undefined;
    const file = files.get(name);
    if (!file) throw missing(name);
    reply.type(TYPES[extname(name)] ?? 'application/octet-stream').header('vary', 'accept-encoding');
    if (!file.brotli || !acceptsBrotli(request.headers['accept-encoding'])) return reply.send(file.plain);
    return reply.header('content-encoding', 'br').send(file.brotli);
  }
}

async function readFiles(): Promise<ReadonlyMap<string, StudioFile>> {
  const entries = await readdir(FOLDER, { recursive: true, withFileTypes: true }).catch(() => []);
  const names = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(FOLDER, join(entry.parentPath, entry.name)));
  return new Map(await Promise.all(names.map(readOne)));
}

/** Reads a file. A build contains a file compressed if that makes it smaller. */
async function readOne(name: string): Promise<[string, StudioFile]> {
  const content = await readFile(join(FOLDER, name));
  if (!name.endsWith('.br')) return [name, { plain: content, brotli: undefined }];
  const plain = await promisify(brotliDecompress)(content);
  return [name.slice(0, -'.br'.length), { plain, brotli: content }];
}

function missing(name: string): PlatformError {
  return name === PAGE
    ? new PlatformError('NOT_FOUND', 'The studio is not built. Run `npm run build` in the checkout of svc.')
    : new PlatformError('NOT_FOUND', `The studio has no file "${name}". Reload the page.`);
}
