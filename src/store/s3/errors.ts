import type { S3StorageConfig } from '../../contracts/index.ts';
import { codeOf, messageOf, PlatformError } from '../../kit/errors/errors.ts';

interface Answered {
  name?: string;
  $metadata?: { httpStatusCode?: number };
}

/**
 * Returns true if the object does not exist. A missing bucket also has status 404, but means that the config is wrong.
 */
export function isAbsent(thrown: unknown): boolean {
  const { name } = (thrown ?? {}) as Answered;
  return name === 'NoSuchKey' || name === 'NotFound';
}

const BY_NAME: Record<string, string> = {
  NoSuchBucket: 'it does not exist. Check adapters.storage.bucket',
  AccessDenied: 'access was denied. Check the permissions of the credentials for this bucket',
  InvalidAccessKeyId: 'the access key is unknown. Check adapters.storage.accessKeyId',
  SignatureDoesNotMatch: 'the signature was rejected. Check adapters.storage.secretAccessKey',
  CredentialsProviderError:
    'no credentials were found. Set adapters.storage.accessKeyId and secretAccessKey, or assign a role to this machine',
};

/**
 * Translates errors of S3 and of the network to platform errors. Messages never quote the request, because its headers
 * contain credentials.
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
  const why = BY_NAME[name] ?? (messageOf(thrown) || name);
  return new PlatformError('UPSTREAM_UNAVAILABLE', `${where} cannot be used: ${why}.`, {
    details,
    cause: thrown,
  });
}
