import { PlatformError } from '../errors.ts';
import type { Environment } from './find.ts';

/** Profiles that every config has, listed or not: the base alone serves them. */
const IMPLIED = ['development', 'production'];

export interface ProfileChoice {
  name: string;
  /** Where the name comes from, for messages. */
  source: '--profile' | 'SVC_PROFILE' | 'NODE_ENV' | 'default';
}

export function chooseProfile(named: string | undefined, env: Environment): ProfileChoice {
  if (named) return { name: named, source: '--profile' };
  if (env.SVC_PROFILE) return { name: env.SVC_PROFILE, source: 'SVC_PROFILE' };
  if (env.NODE_ENV) return { name: env.NODE_ENV, source: 'NODE_ENV' };
  return { name: 'development', source: 'default' };
}

/**
 * The overlay of the chosen profile; an empty one when the base alone serves. Throws CONFIG_NOT_RESOLVED when
 * the file has profiles but not this one, or when this one was asked for by name. A file without profiles
 * serves whatever NODE_ENV happens to say. @spec Platform codes; docs/operations.md "Configuration"
 */
export function requireProfile(choice: ProfileChoice, listed: string[], file: string | null): void {
  const { name, source } = choice;
  if (listed.includes(name) || IMPLIED.includes(name)) return;
  if (listed.length === 0 && source === 'NODE_ENV') return;
  const known = [...new Set([...IMPLIED, ...listed])];
  throw new PlatformError(
    'CONFIG_NOT_RESOLVED',
    `No profile is called "${name}" (from ${source}) in ${file ?? 'the defaults'}.`,
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
