import { extname, join } from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { acceptsBrotli, type Http } from '../../../http/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { packageRoot } from '../../../kit/files/paths.ts';
import { type StudioFile, StudioFiles } from '../domain/studio-files.ts';

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
  const files = new StudioFiles(FOLDER);
  const page = async (request: FastifyRequest, reply: FastifyReply) => {
    reply.headers(PAGE_HEADERS);
    return send(await find(files, PAGE), PAGE, request, reply);
  };
  http.get('/studio', (_request, reply) => reply.redirect('/studio/', 308));
  http.get('/studio/', page);
  http.get('/studio/*', page);
  http.get<{ Params: { asset: string } }>('/studio/assets/:asset', async (request, reply) => {
    const name = `assets/${request.params.asset}`;
    const file = await find(files, name);
    // The name contains a hash of the content, so browsers can keep the file for ever, but not an error.
    reply.header('cache-control', 'public, max-age=31536000, immutable');
    return send(file, name, request, reply);
  });
}

async function find(files: StudioFiles, name: string): Promise<StudioFile> {
  const file = (await files.read()).get(name);
  if (!file) throw missing(name);
  return file;
}

function send(file: StudioFile, name: string, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.type(TYPES[extname(name)] ?? 'application/octet-stream').header('vary', 'accept-encoding');
  if (!file.brotli || !acceptsBrotli(request.headers['accept-encoding'])) return reply.send(file.plain);
  return reply.header('content-encoding', 'br').send(file.brotli);
}

function missing(name: string): PlatformError {
  return name === PAGE
    ? new PlatformError('NOT_FOUND', 'The studio is not built. Run `npm run build` in the checkout of svc.')
    : new PlatformError('NOT_FOUND', `The studio has no file "${name}". Reload the page.`);
}
