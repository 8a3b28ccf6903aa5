import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { codeOf, messageOf, PlatformError } from '../errors.ts';

export const CONFIG_FILE = 'svc.config.json';

/** Of `store.url`, unless a config says otherwise, and what the first start leaves in it. */
const DATA_FOLDER = '.svc';
const CREDENTIALS = 'credentials.json';

export type Environment = Record<string, string | undefined>;

/** The config file that is meant, or null. A named one must exist: CONFIG_NOT_FOUND. Names a file or its folder. */
export function findConfigFile(cwd: string, named: string | undefined): string | null {
  if (named) return namedFile(resolve(cwd, named));
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const candidate = join(folder, CONFIG_FILE);
    if (existsSync(candidate)) return candidate;
    if (folder === dirname(folder)) return null;
  }
}

/**
 * The folder of a project without a config file: the nearest one, at or above, with a platform's data. Another user's data does
 * not count, since its `.env` would decide what a command does.
 */
export function findProjectFolder(cwd: string): string {
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const data = statSync(join(folder, DATA_FOLDER, CREDENTIALS), { throwIfNoEntry: false });
    if (data && data.uid === (process.getuid?.() ?? data.uid)) return folder;
    if (folder === dirname(folder)) return resolve(cwd);
  }
}

function namedFile(path: string): string {
  const file = statSync(path, { throwIfNoEntry: false })?.isDirectory() ? join(path, CONFIG_FILE) : path;
  if (existsSync(file)) return file;
  throw new PlatformError('CONFIG_NOT_FOUND', `There is no config file at ${file}.`, {
    details: { file, hint: 'Check --config and SVC_CONFIG, or leave both out to use the defaults.' },
  });
}

export function readConfigText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new PlatformError('CONFIG_NOT_FOUND', `${file} cannot be read: ${messageOf(error)}.`, {
      details: { file, reason: codeOf(error) ?? 'unknown' },
      cause: error,
    });
  }
}

/** The `.env` beside the config; a missing one is empty. */
export function readDotEnv(projectDir: string): Environment {
  const file = join(projectDir, '.env');
  try {
    return parseEnv(readFileSync(file, 'utf8'));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return {};
    const hint = 'It has secrets of whoever runs this project: run svc as that user.';
    throw new PlatformError('CONFIG_PARSE_ERROR', `${file} cannot be read: ${messageOf(error)}.`, {
      details: { file, ...(codeOf(error) === 'EACCES' ? { hint } : {}) },
      cause: error,
    });
  }
}
