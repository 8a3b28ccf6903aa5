import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { packageRoot } from '../../kit/files/paths.ts';
import { writeWholeFile } from '../../supervisor/data-folder.ts';

/** JSON schemas used by editors for the files of a project. */
export const PROJECT_SCHEMAS = ['svc.schema.json', 'workflow.schema.json'] as const;
export type ProjectSchema = (typeof PROJECT_SCHEMAS)[number];

/** Schema of the configuration. */
export const CONFIG_SCHEMA: ProjectSchema = 'svc.schema.json';

/** Path of a schema copy, relative to the project. A copy exists in every clone, unlike the installation. */
export function schemaCopy(name: ProjectSchema): string {
  return `vendor/${name}`;
}

/** Relative path from a project file to a schema, with `/` on all systems. */
export function schemaPath(projectDir: string, name: ProjectSchema, file: string): string {
  const path = relative(dirname(file), join(projectDir, schemaCopy(name)));
  const url = path.split(sep).join('/');
  return url.startsWith('../') ? url : `./${url}`;
}

/** Schema of this platform version. */
export function schemaText(name: ProjectSchema): string {
  return readFileSync(join(packageRoot, 'config', name), 'utf8');
}

/** Whether the project's copy matches this platform version. */
export function schemaState(projectDir: string, name: ProjectSchema): 'current' | 'stale' | 'missing' {
  const file = join(projectDir, schemaCopy(name));
  if (!existsSync(file)) return 'missing';
  return readFileSync(file, 'utf8') === schemaText(name) ? 'current' : 'stale';
}

/** Writes the project's copy of a schema. Throws STORE_ERROR. */
export function writeSchema(projectDir: string, name: ProjectSchema): void {
  const file = join(projectDir, schemaCopy(name));
  mkdirSync(dirname(file), { recursive: true });
  writeWholeFile(file, schemaText(name), 0o644);
}

const DECLARED = /("\$schema"\s*:\s*)("(?:[^"\\]|\\.)*")/;

/** `$schema` of a configuration file, if any. */
export function declaredSchema(configFile: string): string | undefined {
  const found = DECLARED.exec(readFileSync(configFile, 'utf8'))?.[2];
  return found === undefined ? undefined : JSON.parse(found);
}

/** Sets `$schema` to the project's copy, without changing other text. Throws STORE_ERROR. */
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
