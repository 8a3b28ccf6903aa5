import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { packageRoot } from '../../kit/paths.ts';
import { writeWholeFile } from '../supervisor/data-folder.ts';

/** JSON schemas that editors read for the files of a project. */
export const PROJECT_SCHEMAS = ['svc.schema.json', 'workflow.schema.json'] as const;
export type ProjectSchema = (typeof PROJECT_SCHEMAS)[number];

/** That of the configuration. */
export const CONFIG_SCHEMA: ProjectSchema = 'svc.schema.json';

/** Relative to the project; a copy there resolves in every clone, which a path to the installation does not. */
export function schemaCopy(name: ProjectSchema): string {
  return `vendor/${name}`;
}

/** The path of a project's schema as a file of that project names it, with `/` on every system. */
export function schemaPath(projectDir: string, name: ProjectSchema, file: string): string {
  const path = relative(dirname(file), join(projectDir, schemaCopy(name)));
  const url = path.split(sep).join('/');
  return url.startsWith('../') ? url : `./${url}`;
}

/** The schema of the platform that runs. */
export function schemaText(name: ProjectSchema): string {
  return readFileSync(join(packageRoot, 'config', name), 'utf8');
}

/** Whether a project's copy is the schema of the platform that runs. */
export function schemaState(projectDir: string, name: ProjectSchema): 'current' | 'stale' | 'missing' {
  const file = join(projectDir, schemaCopy(name));
  if (!existsSync(file)) return 'missing';
  return readFileSync(file, 'utf8') === schemaText(name) ? 'current' : 'stale';
}

/** Writes a project's copy of a schema. Throws STORE_ERROR. */
export function writeSchema(projectDir: string, name: ProjectSchema): void {
  const file = join(projectDir, schemaCopy(name));
  mkdirSync(dirname(file), { recursive: true });
  writeWholeFile(file, schemaText(name), 0o644);
}

const DECLARED = /("\$schema"\s*:\s*)("(?:[^"\\]|\\.)*")/;

/** The `$schema` of a configuration file; undefined where it has none. */
export function declaredSchema(configFile: string): string | undefined {
  const found = DECLARED.exec(readFileSync(configFile, 'utf8'))?.[2];
  return found === undefined ? undefined : JSON.parse(found);
}

/** Has a configuration file name the project's copy. The rest of its text stays as it is. Throws STORE_ERROR. */
export function declareSchema(configFile: string, projectDir: string): void {
  const text = readFileSync(configFile, 'utf8');
  const path = JSON.stringify(schemaPath(projectDir, CONFIG_SCHEMA, configFile));
  const { mode } = statSync(configFile);
  writeWholeFile(
    configFile,
    text.replace(DECLARED, (_, key: string) => key + path),
    mode,
  );
}
