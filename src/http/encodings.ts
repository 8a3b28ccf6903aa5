import { PlatformError } from '../kit/errors/errors.ts';
import type { Http } from './http-kit.ts';

/**
 * Rejects compressed bodies and unknown transfer codings. Compressed bodies would fail as invalid JSON. Unknown
 * transfer codings would allow request smuggling.
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

/**
 * Returns the 501 error for an unknown transfer coding. The connection closes, because the end of the body is unknown.
 */
export function unknownTransferCoding(): PlatformError {
  return new PlatformError('NOT_IMPLEMENTED', 'The only supported transfer coding is "chunked".', {
    headers: { connection: 'close' },
  });
}

function unknownContentEncoding(encoding: string): PlatformError {
  return new PlatformError(
    'UNSUPPORTED_MEDIA_TYPE',
    `Content-Encoding "${encoding.slice(0, 100)}" is not supported. Send plain JSON without that header.`,
    { headers: { 'accept-encoding': 'identity' } },
  );
}
