import { PlatformError } from '../errors/errors.ts';
import type { Environment } from './find.ts';

/** Profiles that exist even if the config file does not define them. Their config is then the base config. */
const IMPLIED = ['development', 'production'];

export interface ProfileChoice {
  name: string;
  /** Source of the profile name, used in messages. */
  source: '--profile' | 'SVC_PROFILE' | 'NODE_ENV' | 'default';
}

export function chooseProfile(named: string | undefined, env: Environment): ProfileChoice {
  if (named) return { name: named, source: '--profile' };
  if (env.SVC_PROFILE) return { name: env.SVC_PROFILE, source: 'SVC_PROFILE' };
  if (env.NODE_ENV) return { name: env.NODE_ENV, source: 'NODE_ENV' };
  return { name: 'development', source: 'default' };
}

/**
 * Checks that the chosen profile exists. Throws CONFIG_NOT_RESOLVED if a missing profile was named explicitly, or if
 * the file has profiles. In a file without profiles, NODE_ENV may have any value. @spec Platform codes;
 * docs/operations.md "Configuration"
 */
export function requireProfile(choice: ProfileChoice, listed: string[], file: string | null): void {
  const { name, source } = choice;
  if (listed.includes(name) || IMPLIED.includes(name)) return;
  if (listed.length === 0 && source === 'NODE_ENV') return;
  const known = [...new Set([...IMPLIED, ...listed])];
  throw new PlatformError(
    'CONFIG_NOT_RESOLVED',
    `Profile "${name}" (from ${source}) is not defined in ${file ?? 'the defaults'}.`,
    {
      details: {
        file,
        profile: name,
        source,
        known,
        hint: `Choose one of ${known.join(', ')} with --profile, or add "profiles": {"${name}": {…}} to the file.`,
      },
    },
  );
}
