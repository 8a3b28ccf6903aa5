import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { PlatformError } from '../kit/errors/errors.ts';
import { isBuilt, packageRoot } from '../kit/files/paths.ts';
import { acceptsBrotli } from './brotli.ts';

const TYPES: Record<string, string> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
};
const FOLDER = isBuilt
  ? join(packageRoot, 'dist/assets/swagger-ui')
  : join(packageRoot, 'node_modules/@fastify/swagger-ui/static');

/**
 * Sends a file of Swagger UI. The files are read on request to save memory. A build contains its texts only compressed,
 * because they would be a tenth of the package.
 */
export async function sendDocsAsset(
  asset: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const type = Object.hasOwn(TYPES, asset) ? TYPES[asset] : undefined;
  if (!type) throw new PlatformError('NOT_FOUND', `The documentation asset "${asset}" does not exist.`);
  reply.type(type).header('cache-control', 'public, max-age=3600');
  if (!isBuilt || type.startsWith('image/')) return reply.send(await readFile(join(FOLDER, asset)));
  const compressed = await readFile(join(FOLDER, `${asset}.br`));
  reply.header('vary', 'accept-encoding');
  return acceptsBrotli(request.headers['accept-encoding'])
    ? reply.header('content-encoding', 'br').send(compressed)
    : reply.send(await promisify(brotliDecompress)(compressed));
}
