import type { S3ClientConfig } from '@aws-sdk/client-s3';
import type { S3StorageConfig, StoredObject } from '../../contracts/index.ts';
import {
  type Environment,
  type ReadStoredSecret,
  resolveAnySecret,
  resolveSecret,
  storedSecretOf,
} from '../../kit/config/secret-ref.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { ObjectScope, ObjectStore } from '../ports/index.ts';
import { isAbsent, s3Error } from './errors.ts';

const CONNECT_TIMEOUT_MS = 5000;

/**
 * Opens an object store in an S3-compatible bucket, under `<prefix><tenant>/<namespace>/<key>`. Throws
 * ADAPTER_NOT_CONFIGURED when an environment variable named by the config is missing.
 */
export async function s3Objects(
  config: S3StorageConfig,
  env: Environment,
  stored: ReadStoredSecret = async () => undefined,
): Promise<ObjectStore> {
  // The SDK is loaded only for an S3 store, because the SDK needs 1 MB of memory.
  const sdk = await import('@aws-sdk/client-s3');
  const { bucket: Bucket, maxObjectBytes } = config;
  const client = new sdk.S3Client(clientOptions(config, env, stored));
  const root = config.prefix === '' || config.prefix.endsWith('/') ? config.prefix : `${config.prefix}/`;

  const folderOf = ({ tenant, namespace }: ObjectScope): string =>
    `${root}${encodeURIComponent(tenant)}/${encodeURIComponent(namespace)}/`;

  /** Sends a request. Returns undefined when the object does not exist. */
  async function unlessAbsent<Reply>(call: () => Promise<Reply>): Promise<Reply | undefined> {
    try {
      return await call();
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw s3Error(error, config);
    }
  }
  async function stat(scope: ObjectScope, key: string): Promise<StoredObject | undefined> {
    const Key = folderOf(scope) + key;
    const found = await unlessAbsent(() => client.send(new sdk.HeadObjectCommand({ Bucket, Key })));
    return found && { key, bytes: found.ContentLength ?? 0, modifiedAt: found.LastModified?.getTime() ?? 0 };
  }

  return {
    async read(scope, key) {
      const Key = folderOf(scope) + key;
      return unlessAbsent(async () => {
        const found = await client.send(new sdk.GetObjectCommand({ Bucket, Key }));
        const bytes = found.ContentLength ?? 0;
        if (bytes > maxObjectBytes) throw tooLarge(key, bytes, maxObjectBytes);
        const data = (await found.Body?.transformToByteArray()) ?? new Uint8Array();
        return { key, bytes: data.byteLength, modifiedAt: found.LastModified?.getTime() ?? 0, data };
      });
    },
    async write(scope, key, data) {
      const Key = folderOf(scope) + key;
      const put = new sdk.PutObjectCommand({ Bucket, Key, Body: data, ContentLength: data.byteLength });
      // A write creates a missing object, so status 404 can only mean that the bucket is missing.
      await client.send(put).catch((error: unknown) => {
        throw s3Error(error, config);
      });
    },
    async delete(scope, key) {
      // The response to a delete request of S3 does not show whether the object existed.
      if (!(await stat(scope, key))) return false;
      const Key = folderOf(scope) + key;
      await unlessAbsent(() => client.send(new sdk.DeleteObjectCommand({ Bucket, Key })));
      return true;
    },
    stat,
    async list(scope, { prefix, after, limit }) {
      const folder = folderOf(scope);
      const StartAfter = after === undefined ? undefined : folder + after;
      const input = {
        Bucket,
        Prefix: folder + prefix,
        MaxKeys: limit,
        ...(StartAfter ? { StartAfter } : {}),
      };
      const page = await unlessAbsent(() => client.send(new sdk.ListObjectsV2Command(input)));
      return (page?.Contents ?? []).map(({ Key, Size, LastModified }) => ({
        key: Key!.slice(folder.length),
        bytes: Size ?? 0,
        modifiedAt: LastModified?.getTime() ?? 0,
      }));
    },
    async close() {
      client.destroy();
    },
  };
}

function clientOptions(config: S3StorageConfig, env: Environment, stored: ReadStoredSecret): S3ClientConfig {
  const { region, endpoint, pathStyle, timeoutMs } = config;
  return {
    region,
    forcePathStyle: pathStyle,
    maxAttempts: 3,
    requestHandler: { requestTimeout: timeoutMs, connectionTimeout: CONNECT_TIMEOUT_MS },
    // Many S3-compatible services do not support the SDK's newer checksums. The request signature already protects the
    // body.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    ...(endpoint ? { endpoint } : {}),
    ...credentialsOf(config, env, stored),
  };
}

const CREDENTIALS = ['accessKeyId', 'secretAccessKey', 'sessionToken'] as const;

/**
 * Returns the credentials of the client. Variables are read now. Stored secrets are read for each request, because they
 * can change meanwhile.
 */
function credentialsOf(
  config: S3StorageConfig,
  env: Environment,
  stored: ReadStoredSecret,
): Pick<S3ClientConfig, 'credentials'> {
  const at = (name: (typeof CREDENTIALS)[number]) => `adapters.storage.${name}`;
  if (!CREDENTIALS.some((name) => storedSecretOf(config[name]))) {
    const [accessKeyId, secretAccessKey, sessionToken] = CREDENTIALS.map((name) =>
      resolveSecret(config[name], env, at(name)),
    );
    return accessKeyId && secretAccessKey
      ? { credentials: { accessKeyId, secretAccessKey, ...(sessionToken ? { sessionToken } : {}) } }
      : {};
  }
  return {
    async credentials() {
      const [accessKeyId = '', secretAccessKey = '', sessionToken] = await Promise.all(
        CREDENTIALS.map((name) => resolveAnySecret(config[name], { env, stored }, at(name))),
      );
      // Expired at once, so that the SDK asks again.
      const expiration = new Date(0);
      return { accessKeyId, secretAccessKey, expiration, ...(sessionToken ? { sessionToken } : {}) };
    },
  };
}

function tooLarge(key: string, bytes: number, maxBytes: number): PlatformError {
  return new PlatformError(
    'PAYLOAD_TOO_LARGE',
    `The object ${JSON.stringify(key)} has ${bytes} bytes; plugins may read at most ${maxBytes} (adapters.storage.maxObjectBytes).`,
    { details: { bytes, maxBytes } },
  );
}
