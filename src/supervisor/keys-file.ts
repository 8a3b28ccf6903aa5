import { chmodSync, readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import type { OperatorCredentials } from '../daemons/process-protocol.ts';
import type { Environment } from '../kit/config/config.ts';
import { codeOf, messageOf, PlatformError } from '../kit/errors/errors.ts';
import { isMasterKey, type KeyMaterial } from '../kit/security/keys.ts';
import type { Random } from '../kit/security/random.ts';
import { type DataFolder, writePrivateFile } from './data-folder.ts';

const SECRET_BYTES = 32;

const OPERATOR = { hostId: 'operator', namespaceId: 'default' };

const Secret = z.string().min(1);
const KeysFile = z.object({
  jwtSecret: Secret,
  internalSecret: Secret,
  masterKey: Secret,
  /** Former master key, which is present only until a rotation of the master key is complete. */
  previousMasterKey: Secret.optional(),
  /** Time of the last rotation, in epoch milliseconds. */
  masterKeySince: z.number().optional(),
});
export type KeysFile = z.infer<typeof KeysFile>;
const CredentialsFile = z.object({
  clientId: Secret,
  clientSecret: Secret,
  hostId: Secret,
  namespaceId: Secret,
});

export interface Secrets {
  keys: KeyMaterial;
  operator: OperatorCredentials;
  /** Whether a file was created. Files are created only at the first start in a data folder. */
  created: boolean;
}

/**
 * Reads secrets from environment variables and key files, and creates missing files. The caller must hold the owner
 * lock. Throws STORE_ERROR if a file is damaged.
 */
export function loadSecrets(folder: DataFolder, env: Environment, random: Random): Secrets {
  const stored = readOrCreate<KeysFile>(folder.keys, KeysFile, () => ({
    jwtSecret: random.secret(SECRET_BYTES),
    internalSecret: random.secret(SECRET_BYTES),
    masterKey: random.secret(SECRET_BYTES),
  }));
  const given = environmentOperator(env);
  const operator = given
    ? { value: given, created: false }
    : readOrCreate(folder.credentials, CredentialsFile, () => ({
        clientId: `client_${random.uuid()}`,
        clientSecret: random.secret(SECRET_BYTES),
        ...OPERATOR,
      }));
  const masterKey = env.SVC_MASTER_KEY || stored.value.masterKey;
  const previous = [env.SVC_MASTER_KEY_PREVIOUS, stored.value.previousMasterKey].filter(
    (key): key is string => !!key,
  );
  requireMasterKey(masterKey, env.SVC_MASTER_KEY ? 'SVC_MASTER_KEY' : null, folder);
  for (const key of previous)
    requireMasterKey(key, key === env.SVC_MASTER_KEY_PREVIOUS ? 'SVC_MASTER_KEY_PREVIOUS' : null, folder);
  return {
    keys: {
      jwtSecret: env.GATEWAY_JWT_SECRET || stored.value.jwtSecret,
      isJwtSecretGenerated: !env.GATEWAY_JWT_SECRET,
      previousJwtSecret: env.GATEWAY_JWT_SECRET_PREVIOUS || null,
      internalSecret: env.GATEWAY_INTERNAL_SECRET || stored.value.internalSecret,
      masterKey,
      ...(previous.length > 0 ? { previousMasterKeys: previous } : {}),
    },
    operator: operator.value,
    created: stored.created || operator.created,
  };
}

function requireMasterKey(key: string, variable: string | null, folder: DataFolder): void {
  if (isMasterKey(key)) return;
  const unset =
    variable === 'SVC_MASTER_KEY'
      ? 'Unset SVC_MASTER_KEY to use the master key in keys.json.'
      : `Unset ${variable}.`;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `The ${variable === 'SVC_MASTER_KEY_PREVIOUS' ? 'previous master key' : 'master key'} must be ${SECRET_BYTES} bytes in base64url.`,
    {
      details: {
        hint: variable
          ? unset
          : `Restore ${folder.keys} from a backup: its master key is required to decrypt stored secrets.`,
      },
    },
  );
}

/**
 * Starts a rotation of the master key. After this call, the new key encrypts and decrypts, and the former key only
 * decrypts.
 */
export function startKeyRotation(folder: DataFolder, keys: KeysFile, masterKey: string, now: number): void {
  const next = { ...keys, masterKey, previousMasterKey: keys.masterKey, masterKeySince: now };
  writePrivateFile(folder.keys, `${JSON.stringify(next, null, 2)}\n`);
}

/** Ends a rotation by removing the former master key. */
export function endKeyRotation(folder: DataFolder, { previousMasterKey: _former, ...keys }: KeysFile): void {
  writePrivateFile(folder.keys, `${JSON.stringify(keys, null, 2)}\n`);
}

/**
 * Reads the secrets again before services restart. Throws STORE_ERROR if `keys.json` is missing, because a new master
 * key could not decrypt the stored secrets.
 */
export function reloadSecrets(folder: DataFolder, env: Environment, random: Random): Secrets {
  if (readKeys(folder)) return loadSecrets(folder, env, random);
  throw new PlatformError('STORE_ERROR', `${folder.keys} is missing.`, {
    details: {
      file: folder.keys,
      hint: 'Restore it from a backup: its master key is required to decrypt stored secrets.',
    },
  });
}

/** Returns the stored secrets, or null before the first start. */
export function readKeys(folder: DataFolder): KeysFile | null {
  return readJson(folder.keys, KeysFile);
}

/** Returns the operator's credentials, or null before the first start. Environment variables take precedence. */
export function readCredentials(folder: DataFolder, env: Environment): OperatorCredentials | null {
  return environmentOperator(env) ?? readJson(folder.credentials, CredentialsFile);
}

/**
 * Reads the operator credentials from the environment. Returns null if both variables are missing. Throws
 * VALIDATION_ERROR if only one variable is set.
 */
function environmentOperator(env: Environment): OperatorCredentials | null {
  const { SVC_OPERATOR_CLIENT_ID: clientId, SVC_OPERATOR_CLIENT_SECRET: clientSecret } = env;
  if (clientId && clientSecret) return { clientId, clientSecret, ...OPERATOR };
  if (!clientId && !clientSecret) return null;
  const [set, unset] = clientId ? ['ID', 'SECRET'] : ['SECRET', 'ID'];
  throw new PlatformError(
    'VALIDATION_ERROR',
    `SVC_OPERATOR_CLIENT_${set} is set, but SVC_OPERATOR_CLIENT_${unset} is not.`,
    { details: { hint: 'Set both, or neither to use the client in credentials.json.' } },
  );
}

function readOrCreate<T>(
  file: string,
  schema: z.ZodType<T>,
  create: () => T,
): { value: T; created: boolean } {
  const stored = readJson(file, schema);
  if (stored) {
    if ((statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600);
    return { value: stored, created: false };
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
    throw new PlatformError('STORE_ERROR', `Cannot use ${file}: ${reason}.`, {
      details: { file, hint: 'Restore it from a backup: a new file could not decrypt stored secrets.' },
      cause: error,
    });
  }
}
