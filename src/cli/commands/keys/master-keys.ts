import type { Environment } from '../../../kit/config/config.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { isMasterKey } from '../../../kit/security/keys.ts';
import type { DataFolder } from '../../../supervisor/data-folder.ts';
import { type CurrentMasterKey, currentMasterKey } from '../../../supervisor/master-key.ts';

/**
 * Returns the master keys in use. Throws NOT_FOUND before the first start, and VALIDATION_ERROR for a malformed
 * environment variable.
 */
export function requireMasterKeys(folder: DataFolder, env: Environment): CurrentMasterKey {
  for (const name of ['SVC_MASTER_KEY', 'SVC_MASTER_KEY_PREVIOUS'] as const) {
    const value = env[name];
    if (value && !isMasterKey(value))
      throw new PlatformError('VALIDATION_ERROR', `${name} is not 32 bytes in base64url.`, {
        details: { hint: `Correct or unset ${name}.` },
      });
  }
  const current = currentMasterKey(folder, env);
  if (current) return current;
  throw new PlatformError('NOT_FOUND', `${folder.root} has no master key yet.`, {
    details: { hint: 'The first svc up creates it. SVC_HOME or --config select another folder.' },
  });
}
