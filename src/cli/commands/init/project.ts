import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CONFIG_FILE } from '../../../kit/config/config.ts';
import { messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import { draftPathOf } from '../../../kit/files/draft-path.ts';
import type { Random } from '../../../kit/security/random.ts';
import { writeWholeFile } from '../../../supervisor/data-folder.ts';
import { PROJECT_SCHEMAS, schemaCopy, schemaText } from '../../vendor/project-schemas.ts';
import { agentsText } from './agents-file.ts';
import { type ExampleName, pluginOf, workflowOf, writeExample } from './examples.ts';
import { configText, extendedEnv, extendedIgnore } from './files.ts';

export interface ProjectFile {
  /** Path relative to the project folder. Paths of folders end with a slash. */
  path: string;
  action: 'created' | 'extended' | 'replaced' | 'kept';
}

export interface ProjectOptions {
  folder: string;
  example: ExampleName;
  force: boolean;
  random: Random;
}

/** A file to write. `text` is null if the file is already up to date. */
interface Draft extends ProjectFile {
  text: string | null;
  mode: number;
}

/**
 * Writes the files of a project. Removes the written files on failure. Writes the config last, because the config marks
 * a folder as a project. Throws CONFLICT for an existing project unless `force` is set.
 */
export async function createProject(
  options: ProjectOptions,
): Promise<{ files: ProjectFile[]; plugin: string | null }> {
  const { folder, example, random } = options;
  requireNoProject(options);
  const plugin = pluginOf(example);
  const created: string[] = [];
  try {
    makeFolder(folder, created);
    makeFolder(join(folder, 'plugins'), created);
    makeFolder(join(folder, 'vendor'), created);
    const files = plugin && example !== 'none' ? await addPlugin(folder, example, plugin, created) : [];
    if (example === 'workflow') makeFolder(join(folder, 'workflows'), created);
    // `draftsOf` reads all existing files, so an unreadable file is reported before any draft is written.
    for (const draft of draftsOf(folder, example, random)) {
      if (draft.text !== null) writeDraft(folder, draft, created);
      files.push({ path: draft.path, action: draft.action });
    }
    return { files, plugin };
  } catch (error) {
    for (const path of created.reverse()) rmSync(path, { recursive: true, force: true });
    if (error instanceof PlatformError) throw error;
    throw new PlatformError('STORE_ERROR', `Cannot write the project to ${folder}: ${messageOf(error)}.`, {
      details: { folder, hint: 'Choose a folder writable by this user: svc init <folder>' },
      cause: error,
    });
  }
}

export function isProject(folder: string): boolean {
  return existsSync(join(folder, CONFIG_FILE));
}

/** Adds missing secrets to the `.env` of a project, and adds `.env` to `.gitignore`. */
export function addSecrets(folder: string, random: Random): ProjectFile[] {
  return secretDrafts(folder, random).map((draft) => {
    if (draft.text !== null) writeDraft(folder, draft, []);
    return { path: draft.path, action: draft.action };
  });
}

/** Throws CONFLICT if the folder already contains a project, unless `force` is set. */
export function requireNoProject({ folder, force }: Pick<ProjectOptions, 'folder' | 'force'>): void {
  const file = join(folder, CONFIG_FILE);
  if (force || !isProject(folder)) return;
  throw new PlatformError('CONFLICT', `${folder} already is a project: it has ${CONFIG_FILE}.`, {
    details: { file, hint: '--force overwrites the config and keeps secrets and plugins.' },
  });
}

/** Creates the folder of the example plugin atomically. An existing folder is kept. */
async function addPlugin(
  folder: string,
  example: Exclude<ExampleName, 'none'>,
  plugin: string,
  created: string[],
): Promise<ProjectFile[]> {
  const target = join(folder, 'plugins', plugin);
  const path = `plugins/${plugin}/`;
  if (existsSync(target)) return [{ path, action: 'kept' }];
  const draft = draftPathOf(target);
  created.push(draft);
  const vendor = join(folder, 'vendor');
  const before = readdirSync(vendor);
  await writeExample(example, draft, vendor);
  const vendored = readdirSync(vendor).filter((name) => !before.includes(name));
  created.push(...vendored.map((name) => join(vendor, name)));
  renameSync(draft, target);
  created.push(target);
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
    ...PROJECT_SCHEMAS.map((name) => managedDraft(folder, schemaCopy(name), () => schemaText(name))),
    // An existing workflow file is kept, because the user might have edited the file.
    ...(workflow ? [draftOf(folder, workflow.path, 0o644, (before) => before || workflow.text)] : []),
    // An existing file is kept, because it can have rules of the project.
    draftOf(folder, 'AGENTS.md', 0o644, (before) => before || agentsText()),
    ...secretDrafts(folder, random),
    managedDraft(folder, CONFIG_FILE, () => configText(folder)),
  ];
}

/** Returns a draft of a file that svc maintains and therefore overwrites. */
function managedDraft(folder: string, path: string, text: () => string): Draft {
  const draft = draftOf(folder, path, 0o644, text);
  return { ...draft, action: draft.action === 'extended' ? 'replaced' : draft.action };
}

function writeDraft(folder: string, { path, text, mode, action }: Draft, created: string[]): void {
  const file = join(folder, path);
  if (action === 'created') created.push(file);
  writeWholeFile(file, text ?? '', mode);
}

function makeFolder(folder: string, created: string[]): void {
  const first = mkdirSync(folder, { recursive: true });
  if (first !== undefined) created.push(first);
}
