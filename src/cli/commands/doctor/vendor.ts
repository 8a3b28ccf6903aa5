import { relative, resolve, sep } from 'node:path';
import { CONFIG_FILE } from '../../../kit/config/config.ts';
import { findFolders } from '../../../plugins/index.ts';
import { shellWord } from '../../shell-word.ts';
import {
  CONFIG_SCHEMA,
  declaredSchema,
  declareSchema,
  PROJECT_SCHEMAS,
  schemaCopy,
  schemaState,
  writeSchema,
} from '../../vendor/project-schemas.ts';
import { vendoredState } from '../../vendor/vendored-platform.ts';
import { type CheckTarget, type Fact, fine, warning } from './check.ts';

/** Checks `vendor/`: the platform archive for tests of plugins, and schemas for editors. */
export async function checkVendor(target: CheckTarget): Promise<Fact[]> {
  const facts = [...(await archiveFacts(target)), ...schemaFacts(target)];
  return facts.length > 0 ? facts : [fine('complete, so plugin tests and editors work in every clone')];
}

/**
 * Reports a faulty svc-platform archive of a plugin only as a warning. Such an archive breaks the plugin's tests but
 * not the platform.
 */
async function archiveFacts({ loaded: { projectDir, config }, context }: CheckTarget): Promise<Fact[]> {
  const { folders } = await findFolders(projectDir, config.plugins);
  const states = await Promise.all(
    folders.map(async (folder) => ({ folder, fault: (await vendoredState(folder)).fault })),
  );
  return states.flatMap(({ folder, fault }) =>
    fault === null
      ? []
      : [
          warning(
            `npm install and the tests of ${folder} fail: ${fault}.`,
            `svc plugins repair ${shellWord(relative(context.cwd, folder) || '.')}, then commit vendor/ and package.json`,
          ),
        ],
  );
}

function schemaFacts({ loaded: { projectDir, configFile } }: CheckTarget): Fact[] {
  const stale = PROJECT_SCHEMAS.filter((name) => schemaState(projectDir, name) === 'stale').map((name) =>
    warning(
      `${schemaCopy(name)} does not match this version of svc.`,
      'Update it with svc doctor --fix, then commit it.',
      () => {
        writeSchema(projectDir, name);
        return `wrote ${schemaCopy(name)}`;
      },
    ),
  );
  const declared = configFile === null ? undefined : declaredSchema(configFile);
  if (configFile === null || declared === undefined || /^[a-z]+:\/\//.test(declared)) return stale;
  const target = resolve(projectDir, declared);
  const isInside = !relative(projectDir, target).startsWith(`..${sep}`);
  const isCopy = target === resolve(projectDir, schemaCopy(CONFIG_SCHEMA));
  if (isInside && (!isCopy || schemaState(projectDir, CONFIG_SCHEMA) !== 'missing')) return stale;
  const what = isInside ? 'does not exist' : 'is outside the project, so other clones do not have it';
  return [
    ...stale,
    warning(
      `The "$schema" of ${CONFIG_FILE} (${declared}) ${what}.`,
      'svc doctor --fix copies the schema to vendor/ and updates "$schema"; then commit both.',
      () => {
        writeSchema(projectDir, CONFIG_SCHEMA);
        declareSchema(configFile, projectDir);
        return `wrote ${schemaCopy(CONFIG_SCHEMA)} and set "$schema" to it`;
      },
    ),
  ];
}
