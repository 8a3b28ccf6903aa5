import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { codeOf, messageOf, PlatformError } from '../errors/errors.ts';

export const CONFIG_FILE = 'svc.config.json';

const DATA_FOLDER = '.svc';
/** File that the first start creates in the data folder. The file marks a folder with platform data. */
const CREDENTIALS = 'credentials.json';

export type Environment = Record<string, string | undefined>;

/**
 * Returns the path of the config file, or null if no file is found. Uses `named`, or else the nearest `svc.config.json`
 * at or above `cwd`. Throws CONFIG_NOT_FOUND if `named` does not exist.
 */
export function findConfigFile(cwd: string, named: string | undefined): string | null {
  if (named) return namedFile(resolve(cwd, named));
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const candidate = join(folder, CONFIG_FILE);
    if (existsSync(candidate)) return candidate;
    if (folder === dirname(folder)) return null;
  }
}

/**
 * Returns the nearest folder with platform data at or above `cwd`, or else `cwd`. Skips data of other users, because a
 * `.env` file of another user would control the command.
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
  throw new PlatformError('CONFIG_NOT_FOUND', `Config file ${file} does not exist.`, {
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

/** Reads the `.env` file beside the config. Returns an empty object if the file does not exist. */
export function readDotEnv(projectDir: string): Environment {
  const file = join(projectDir, '.env');
  try {
    return parseEnv(readFileSync(file, 'utf8'));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return {};
    const hint = 'The file contains secrets of the user that runs this project. Run svc as that user.';
    throw new PlatformError('CONFIG_PARSE_ERROR', `${file} cannot be read: ${messageOf(error)}.`, {
      details: { file, ...(codeOf(error) === 'EACCES' ? { hint } : {}) },
      cause: error,
    });
  }
}
