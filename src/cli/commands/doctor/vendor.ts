import { relative, resolve, sep } from 'node:path';
import { CONFIG_FILE } from '../../../kit/config.ts';
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
import { type Fact, fine, type Patient, warning } from './check.ts';

/** What a clone of the project needs in `vendor/`: the platform's archive for tests of plugins, schemas for editors. */
export async function checkVendor(patient: Patient): Promise<Fact[]> {
  const facts = [...(await archiveFacts(patient)), ...schemaFacts(patient)];
  return facts.length > 0 ? facts : [fine('plugins and editors find what they need in every clone')];
}

/** Warnings: the platform runs without it, the plugin's own tests do not. */
async function archiveFacts({ loaded: { projectDir, config }, context }: Patient): Promise<Fact[]> {
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

function schemaFacts({ loaded: { projectDir, configFile } }: Patient): Fact[] {
  const stale = PROJECT_SCHEMAS.filter((name) => schemaState(projectDir, name) === 'stale').map((name) =>
    warning(
      `${schemaCopy(name)} is not the schema of the svc that runs.`,
      'svc doctor --fix writes it anew; then commit it.',
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
  const what = isInside ? 'is not there' : 'lies outside of the project, so other clones do not have it';
  return [
    ...stale,
    warning(
      `The "$schema" of ${CONFIG_FILE} (${declared}) ${what}.`,
      'svc doctor --fix copies the schema into vendor/ and names it; then commit both.',
      () => {
        writeSchema(projectDir, CONFIG_SCHEMA);
        declareSchema(configFile, projectDir);
        return `wrote ${schemaCopy(CONFIG_SCHEMA)}, which "$schema" now names`;
      },
    ),
  ];
}
