import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CONFIG_FILE } from '../../../kit/config.ts';
import { draftPathOf } from '../../../kit/draft-path.ts';
import { messageOf, PlatformError } from '../../../kit/errors.ts';
import type { Random } from '../../../kit/random.ts';
import { writeWholeFile } from '../../supervisor/data-folder.ts';
import { PROJECT_SCHEMAS, schemaCopy, schemaText } from '../../vendor/project-schemas.ts';
import { type ExampleName, pluginOf, workflowOf, writeExample } from './examples.ts';
import { configText, extendedEnv, extendedIgnore } from './files.ts';

export interface ProjectFile {
  /** Relative to the project's folder; a folder ends with a slash. */
  path: string;
  action: 'created' | 'extended' | 'replaced' | 'kept';
}

export interface ProjectOptions {
  folder: string;
  example: ExampleName;
  force: boolean;
  random: Random;
}

/** A file that is going to be written; `text` null: it is right as it is. */
interface Draft extends ProjectFile {
  text: string | null;
  mode: number;
}

/**
 * Writes a project's files, the config last: a folder without one is no project yet. When anything fails, what was
 * made is taken away again. Throws CONFLICT for a project that is there already; secrets are never replaced.
 */
export async function createProject(
  options: ProjectOptions,
): Promise<{ files: ProjectFile[]; plugin: string | null }> {
  const { folder, example, random } = options;
  requireNoProject(options);
  const plugin = pluginOf(example);
  const made: string[] = [];
  try {
    makeFolder(folder, made);
    makeFolder(join(folder, 'plugins'), made);
    makeFolder(join(folder, 'vendor'), made);
    const files = plugin && example !== 'none' ? await addPlugin(folder, example, plugin, made) : [];
    if (example === 'workflow') makeFolder(join(folder, 'workflows'), made);
    // All that is kept from the reader is read before the first file is written.
    for (const draft of draftsOf(folder, example, random)) {
      if (draft.text !== null) writeDraft(folder, draft, made);
      files.push({ path: draft.path, action: draft.action });
    }
    return { files, plugin };
  } catch (error) {
    for (const path of made.reverse()) rmSync(path, { recursive: true, force: true });
    if (error instanceof PlatformError) throw error;
    throw new PlatformError(
      'STORE_ERROR',
      `The project cannot be written to ${folder}: ${messageOf(error)}.`,
      {
        details: { folder, hint: 'Choose a folder that this user may write: svc init <folder>' },
        cause: error,
      },
    );
  }
}

export function isProject(folder: string): boolean {
  return existsSync(join(folder, CONFIG_FILE));
}

/** Writes the secrets that the `.env` of a project lacks, and keeps it out of version control. */
export function addSecrets(folder: string, random: Random): ProjectFile[] {
  return secretDrafts(folder, random).map((draft) => {
    if (draft.text !== null) writeDraft(folder, draft, []);
    return { path: draft.path, action: draft.action };
  });
}

/** Throws CONFLICT for a project that is there already. */
export function requireNoProject({ folder, force }: Pick<ProjectOptions, 'folder' | 'force'>): void {
  const file = join(folder, CONFIG_FILE);
  if (force || !isProject(folder)) return;
  throw new PlatformError('CONFLICT', `${folder} is a project already: it has ${CONFIG_FILE}.`, {
    details: { file, hint: '--force writes the config anew; secrets and plugins stay as they are.' },
  });
}

/** A plugin's folder appears whole, or not at all. One that is there stays. */
async function addPlugin(
  folder: string,
  example: Exclude<ExampleName, 'none'>,
  plugin: string,
  made: string[],
): Promise<ProjectFile[]> {
  const target = join(folder, 'plugins', plugin);
  const path = `plugins/${plugin}/`;
  if (existsSync(target)) return [{ path, action: 'kept' }];
  const draft = draftPathOf(target);
  made.push(draft);
  const vendor = join(folder, 'vendor');
  const before = readdirSync(vendor);
  await writeExample(example, draft, vendor);
  const vendored = readdirSync(vendor).filter((name) => !before.includes(name));
  made.push(...vendored.map((name) => join(vendor, name)));
  renameSync(draft, target);
  made.push(target);
  return [path, ...vendored.map((name) => `vendor/${name}`)].map((at) => ({ path: at, action: 'created' }));
}

function draftOf(folder: string, path: string, mode: number, next: (before: string) => string): Draft {
  const file = join(folder, path);
  const before = existsSync(file) ? readFileSync(file, 'utf8') : null;
  const after = next(before ?? '');
  const action = before === null ? 'created' : after === before ? 'kept' : 'extended';
  return { path, action, mode, text: after === before ? null : after };
}

function secretDrafts(folder: string, random: Random): Draft[] {
  return [
    draftOf(folder, '.gitignore', 0o644, extendedIgnore),
    draftOf(folder, '.env', 0o600, (before) => extendedEnv(before, random)),
  ];
}

function draftsOf(folder: string, example: ExampleName, random: Random): Draft[] {
  const workflow = workflowOf(example, folder);
  return [
    ...PROJECT_SCHEMAS.map((name) => replacing(folder, schemaCopy(name), () => schemaText(name))),
    // One that the reader has edited stays.
    ...(workflow ? [draftOf(folder, workflow.path, 0o644, (before) => before || workflow.text)] : []),
    ...secretDrafts(folder, random),
    replacing(folder, CONFIG_FILE, () => configText(folder)),
  ];
}

/** A file that is ours as a whole. */
function replacing(folder: string, path: string, text: () => string): Draft {
  const draft = draftOf(folder, path, 0o644, text);
  return { ...draft, action: draft.action === 'extended' ? 'replaced' : draft.action };
}

function writeDraft(folder: string, { path, text, mode, action }: Draft, made: string[]): void {
  const file = join(folder, path);
  if (action === 'created') made.push(file);
  writeWholeFile(file, text ?? '', mode);
}

function makeFolder(folder: string, made: string[]): void {
  const first = mkdirSync(folder, { recursive: true });
  if (first !== undefined) made.push(first);
}
