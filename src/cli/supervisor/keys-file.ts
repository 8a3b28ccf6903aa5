import { chmodSync, readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import type { OperatorCredentials } from '../../daemons/define-daemon.ts';
import type { Environment } from '../../kit/config.ts';
import { codeOf, messageOf, PlatformError } from '../../kit/errors.ts';
import type { KeyMaterial } from '../../kit/keys.ts';
import type { Random } from '../../kit/random.ts';
import { type DataFolder, writePrivateFile } from './data-folder.ts';

const SECRET_BYTES = 32;

const Secret = z.string().min(1);
const KeysFile = z.object({ jwtSecret: Secret, internalSecret: Secret, masterKey: Secret });
const CredentialsFile = z.object({
  clientId: Secret,
  clientSecret: Secret,
  hostId: Secret,
  namespaceId: Secret,
});

export interface Secrets {
  keys: KeyMaterial;
  operator: OperatorCredentials;
  /** Whether either file was made just now: the first start in this folder. */
  created: boolean;
}

/**
 * Reads `keys.json` and `credentials.json`, and makes them at the first start; only the holder of the owner lock
 * may call it. The environment wins: GATEWAY_JWT_SECRET, GATEWAY_INTERNAL_SECRET, SVC_MASTER_KEY. Throws
 * STORE_ERROR for a damaged file: a new master key would make every sealed secret unreadable; VALIDATION_ERROR for
 * a master key that is none.
 */
export function loadSecrets(folder: DataFolder, env: Environment, random: Random): Secrets {
  const kept = readOrCreate(folder.keys, KeysFile, () => ({
    jwtSecret: random.secret(SECRET_BYTES),
    internalSecret: random.secret(SECRET_BYTES),
    masterKey: random.secret(SECRET_BYTES),
  }));
  const operator = readOrCreate(folder.credentials, CredentialsFile, () => ({
    clientId: `client_${random.uuid()}`,
    clientSecret: random.secret(SECRET_BYTES),
    hostId: 'operator',
    namespaceId: 'default',
  }));
  const masterKey = env.SVC_MASTER_KEY || kept.value.masterKey;
  if (Buffer.from(masterKey, 'base64url').length !== SECRET_BYTES) {
    throw new PlatformError(
      'VALIDATION_ERROR',
      `The master key must be ${SECRET_BYTES} bytes in base64url.`,
      {
        details: {
          hint: env.SVC_MASTER_KEY
            ? 'Unset SVC_MASTER_KEY to use the one in keys.json.'
            : `Put ${folder.keys} back from a backup: what its master key sealed opens with no other.`,
        },
      },
    );
  }
  return {
    keys: {
      jwtSecret: env.GATEWAY_JWT_SECRET || kept.value.jwtSecret,
      isJwtSecretGenerated: !env.GATEWAY_JWT_SECRET,
      previousJwtSecret: env.GATEWAY_JWT_SECRET_PREVIOUS || null,
      internalSecret: env.GATEWAY_INTERNAL_SECRET || kept.value.internalSecret,
      masterKey,
    },
    operator: operator.value,
    created: kept.created || operator.created,
  };
}

/** The same while the platform runs. Throws STORE_ERROR when `keys.json` is gone: new ones would open nothing. */
export function reloadSecrets(folder: DataFolder, env: Environment, random: Random): Secrets {
  if (readKeys(folder)) return loadSecrets(folder, env, random);
  throw new PlatformError('STORE_ERROR', `${folder.keys} is gone.`, {
    details: {
      file: folder.keys,
      hint: 'Put it back from a backup: what its master key sealed opens with no other.',
    },
  });
}

/** The platform's kept secrets; null before the first start. */
export function readKeys(folder: DataFolder): z.infer<typeof KeysFile> | null {
  return readJson(folder.keys, KeysFile);
}

/** The operator's credentials as a command on this machine reads them; null before the first start. */
export function readCredentials(folder: DataFolder): OperatorCredentials | null {
  return readJson(folder.credentials, CredentialsFile);
}

function readOrCreate<T>(
  file: string,
  schema: z.ZodType<T>,
  create: () => T,
): { value: T; created: boolean } {
  const kept = readJson(file, schema);
  if (kept) {
    if ((statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600);
    return { value: kept, created: false };
  }
  const value = create();
  writePrivateFile(file, `${JSON.stringify(value, null, 2)}\n`);
  return { value, created: true };
}

function readJson<T>(file: string, schema: z.ZodType<T>): T | null {
  try {
    const text = readFileSync(file, 'utf8');
    return schema.parse(JSON.parse(text));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    const reason = error instanceof z.ZodError ? 'it is incomplete' : messageOf(error);
    throw new PlatformError('STORE_ERROR', `${file} cannot be used: ${reason}.`, {
      details: { file, hint: 'Restore it from a backup; a new one would not open what the old one sealed.' },
      cause: error,
    });
  }
}
