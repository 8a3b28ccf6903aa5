import { readFileSync } from 'node:fs';
import { messageOf, PlatformError } from '../errors/errors.ts';
import type { Environment } from './secret-ref.ts';

/** Environment variables with secrets of the platform, which can also be mounted as files. */
export const PLATFORM_SECRETS = [
  'GATEWAY_JWT_SECRET',
  'GATEWAY_JWT_SECRET_PREVIOUS',
  'GATEWAY_INTERNAL_SECRET',
  'SVC_MASTER_KEY',
  'SVC_MASTER_KEY_PREVIOUS',
  'SVC_OPERATOR_CLIENT_ID',
  'SVC_OPERATOR_CLIENT_SECRET',
] as const;

/**
 * Reads each unset secret `<NAME>` from the file at the path in `<NAME>_FILE`. Throws VALIDATION_ERROR for an empty or
 * unreadable file.
 */
export function withMountedSecrets(env: Environment): Environment {
  const mounted = PLATFORM_SECRETS.flatMap((name) => {
    const file = env[`${name}_FILE`];
    return env[name] || !file ? [] : [[name, readSecret(file, name)] as const];
  });
  return { ...env, ...Object.fromEntries(mounted) };
}

function readSecret(file: string, name: string): string {
  const hint = `Mount the secret at ${file}, or unset ${name}_FILE.`;
  const details = { variable: `${name}_FILE`, file, hint };
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new PlatformError('VALIDATION_ERROR', `${name}_FILE cannot be read: ${messageOf(error)}.`, {
      ...{ details, cause: error },
    });
  }
  if (text !== '') return text;
  throw new PlatformError('VALIDATION_ERROR', `${name}_FILE is ${file}, which is empty.`, { details });
}
