import { PlatformError } from '../kit/errors.ts';
import type { Http } from './server.ts';

/**
 * Refuses bodies that are encoded in a way nobody here decodes, before they are read: taken as they are, they would be
 * told to be no JSON, or end where somebody before us thinks they go on.
 */
export function refuseEncodedBodies(http: Http): void {
  http.addHook('preParsing', (request, _reply, _payload, done) => {
    const { 'content-encoding': content, 'transfer-encoding': transfer } = request.headers;
    if (transfer !== undefined && transfer.toLowerCase() !== 'chunked') done(unknownTransferCoding());
    else if (content !== undefined && content.toLowerCase() !== 'identity')
      done(unknownContentEncoding(content));
    else done();
  });
}

/** The connection ends with it: where the next request would begin is anybody's guess. */
export function unknownTransferCoding(): PlatformError {
  return new PlatformError('NOT_IMPLEMENTED', 'The only transfer coding taken here is "chunked".', {
    headers: { connection: 'close' },
  });
}

function unknownContentEncoding(encoding: string): PlatformError {
  return new PlatformError(
    'UNSUPPORTED_MEDIA_TYPE',
    `The body comes with "Content-Encoding: ${encoding.slice(0, 100)}"; send it as plain JSON, without that header.`,
    { headers: { 'accept-encoding': 'identity' } },
  );
}
