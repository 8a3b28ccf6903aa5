import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { OPERATOR_NAMESPACE, storedSecretsIn, unsetSecrets } from '../../../kit/config/secret-ref.ts';
import { postgresUrlOf } from '../../../kit/config/store-url.ts';
import { secretNames } from '../../../store/sqlite/snapshot.ts';
import { type CheckTarget, type Fact, failure, fine } from './check.ts';

/** Reports unset environment variables and missing stored secrets that the config uses. */
export function checkAdapters(target: CheckTarget): Fact[] {
  const { config } = target.loaded;
  const unset = Object.entries(config.adapters).flatMap(([name, adapter]) =>
    unsetSecrets(adapter, target.env, `adapters.${name}`),
  );
  unset.push(...unsetSecrets(config.studio, target.env, 'studio'));
  const facts = [
    ...unset.map(({ key, name }) =>
      failure(`${key} is \${${name}}, but ${name} is not set.`, `Set ${name} in the .env beside the config.`),
    ),
    ...missingSecrets(target),
  ];
  return facts.length > 0 ? facts : [fine('all referenced keys are set')];
}

/** Reports stored secrets that `adapters` references and that `svc.db` lacks. PostgreSQL is not read. */
function missingSecrets({ loaded: { config }, env, folder }: CheckTarget): Fact[] {
  const named = storedSecretsIn(config.adapters, 'adapters');
  if (named.length === 0 || postgresUrlOf(config.store, env) !== null) return [];
  const file = join(folder.root, 'svc.db');
  const stored = existsSync(file) ? secretNames(file, OPERATOR_NAMESPACE) : new Set<string>();
  return named
    .filter(({ name }) => !stored.has(name))
    .map(({ key, name }) =>
      failure(
        `${key} is \${secret:${name}}, but the namespace ${OPERATOR_NAMESPACE} has no secret ${name}.`,
        `svc secrets set ${name} --tenant ${OPERATOR_NAMESPACE}`,
      ),
    );
}
