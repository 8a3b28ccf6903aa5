import type { S3StorageConfig } from '../../contracts/index.ts';
import { codeOf, messageOf, PlatformError } from '../../kit/errors/errors.ts';

interface Answered {
  name?: string;
  $metadata?: { httpStatusCode?: number };
}

/**
 * Returns true when the object does not exist. A missing bucket also gives status 404, but is an error of the config.
 */
export function isAbsent(thrown: unknown): boolean {
  const { name } = (thrown ?? {}) as Answered;
  return name === 'NoSuchKey' || name === 'NotFound';
}

const BY_NAME: Record<string, string> = {
  NoSuchBucket: 'there is no such bucket (adapters.storage.bucket)',
  AccessDenied: 'it refuses access: the credentials may not do this in the bucket',
  InvalidAccessKeyId: 'it does not know the key id (adapters.storage.accessKeyId)',
  SignatureDoesNotMatch: 'it refuses the signature: adapters.storage.secretAccessKey is wrong',
  CredentialsProviderError:
    'there are no credentials: set adapters.storage.accessKeyId and secretAccessKey, or give this machine a role',
};

/**
 * Translates errors of S3 and of the network. Messages never quote the request, because its headers contain
 * credentials.
 */
export function s3Error(thrown: unknown, { bucket, endpoint }: S3StorageConfig): PlatformError {
  if (thrown instanceof PlatformError) return thrown;
  const { name = '', $metadata } = (thrown ?? {}) as Answered;
  const where = `The bucket ${bucket}${endpoint ? ` at ${new URL(endpoint).host}` : ''}`;
  const details = { adapter: 'storage', reason: name || codeOf(thrown), status: $metadata?.httpStatusCode };
  if (name === 'TimeoutError')
    return new PlatformError('UPSTREAM_TIMEOUT', `${where} did not answer in time.`, {
      details,
      cause: thrown,
    });
  const why = BY_NAME[name] ?? `it cannot be used: ${messageOf(thrown) || name}`;
  return new PlatformError('UPSTREAM_UNAVAILABLE', `${where}: ${why}.`, { details, cause: thrown });
}
