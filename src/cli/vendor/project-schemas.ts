import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { packageRoot } from '../../kit/files/paths.ts';
import { writeWholeFile } from '../../supervisor/data-folder.ts';

/** JSON schemas that editors use for the files of a project. */
export const PROJECT_SCHEMAS = ['svc.schema.json', 'workflow.schema.json'] as const;
export type ProjectSchema = (typeof PROJECT_SCHEMAS)[number];

export const CONFIG_SCHEMA: ProjectSchema = 'svc.schema.json';

/**
 * Returns the project-relative path of a schema copy. The copy is committed, so that editors find the schema in every
 * clone.
 */
export function schemaCopy(name: ProjectSchema): string {
  return `vendor/${name}`;
}

/** Returns the relative path from a project file to a schema copy, with `/` on all systems. */
export function schemaPath(projectDir: string, name: ProjectSchema, file: string): string {
  const path = relative(dirname(file), join(projectDir, schemaCopy(name)));
  const url = path.split(sep).join('/');
  return url.startsWith('../') ? url : `./${url}`;
}

/** Returns the schema that belongs to this version of svc. */
export function schemaText(name: ProjectSchema): string {
  return readFileSync(join(packageRoot, 'schemas', name), 'utf8');
}

/** Compares the project's copy with the schema that belongs to this version of svc. */
export function schemaState(projectDir: string, name: ProjectSchema): 'current' | 'stale' | 'missing' {
  const file = join(projectDir, schemaCopy(name));
  if (!existsSync(file)) return 'missing';
  return readFileSync(file, 'utf8') === schemaText(name) ? 'current' : 'stale';
}

export function writeSchema(projectDir: string, name: ProjectSchema): void {
  const file = join(projectDir, schemaCopy(name));
  mkdirSync(dirname(file), { recursive: true });
  writeWholeFile(file, schemaText(name), 0o644);
}

const DECLARED = /("\$schema"\s*:\s*)("(?:[^"\\]|\\.)*")/;

export function declaredSchema(configFile: string): string | undefined {
  const found = DECLARED.exec(readFileSync(configFile, 'utf8'))?.[2];
  return found === undefined ? undefined : JSON.parse(found);
}

/** Sets `$schema` to the project's copy and leaves all other text unchanged. Throws STORE_ERROR if writing fails. */
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
