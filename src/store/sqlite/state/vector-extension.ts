import { getLoadablePath } from 'sqlite-vec';
import { codeOf, messageOf, PlatformError } from '../../../kit/errors/errors.ts';

/**
 * Returns the path of the sqlite-vec extension. Throws STORE_ERROR on platforms for which sqlite-vec has no binary, such
 * as Alpine Linux.
 */
export function extensionPath(): string {
  try {
    return getLoadablePath();
  } catch (error) {
    throw new PlatformError(
      'STORE_ERROR',
      `sqlite-vec has no binary for ${process.platform}-${process.arch} here, so ctx.vectorStore cannot be used: ${messageOf(error)}`,
      { details: { reason: codeOf(error) }, cause: error },
    );
  }
}
