import { PlatformError } from '../errors/errors.ts';
import type { Environment } from './find.ts';

/** Profiles that can be used without an entry in the config file. Without an entry, their config is the base config. */
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
 * Throws CONFIG_NOT_RESOLVED if the chosen profile does not exist. A name from NODE_ENV is accepted if the file defines
 * no profiles. @spec Platform codes; docs/operations.md "Configuration"
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
