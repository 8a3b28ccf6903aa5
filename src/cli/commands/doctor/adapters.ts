import { unsetSecrets } from '../../../kit/config/secret-ref.ts';
import { type CheckTarget, type Fact, failure, fine } from './check.ts';

/** Reports unset environment variables that the config uses for secrets. */
export function checkAdapters({ loaded: { config }, env }: CheckTarget): Fact[] {
  const unset = Object.entries(config.adapters).flatMap(([name, adapter]) =>
    unsetSecrets(adapter, env, `adapters.${name}`),
  );
  unset.push(...unsetSecrets(config.studio, env, 'studio'));
  if (unset.length === 0) return [fine('all referenced keys are set')];
  return unset.map(({ key, variable }) =>
    failure(
      `${key} is \${${variable}}, but ${variable} is not set.`,
      `Set ${variable} in the .env beside the config.`,
    ),
  );
}
