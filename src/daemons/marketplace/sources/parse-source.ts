import { existsSync, statSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import { PluginId } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors.ts';

/** What can be installed. `text` is the source as the lock file keeps it. */
export type Source =
  | { kind: 'npm'; text: string; spec: string }
  | { kind: 'tarball'; text: string; path: string }
  | { kind: 'folder'; text: string; path: string }
  | { kind: 'git'; text: string; url: string; ref: string | null };

const ARCHIVE = /\.(?:tgz|tar\.gz)$/i;
const GIT_URL = /^(?:git\+)?(https|ssh|file|git):\/\//;
const GITHUB = /^github:([\w.-]+\/[\w.-]+?)(?:\.git)?$/;

/**
 * Tells what a source is: a path (of the project, when relative) to a folder or an archive, a git address, or an
 * npm name with or without range. Throws VALIDATION_ERROR that says what was understood.
 */
export function parseSource(text: string, projectDir: string): Source {
  // The text becomes an argument of npm and git; one that begins with a dash would be an option of theirs.
  if (text.startsWith('-') || /[\0\r\n]/.test(text)) throw refused(text, 'it is no name, path or address');
  refuseCredentials(text);
  const git = parseGit(text);
  if (git) return git;
  if (text.startsWith('https://') && URL.canParse(text) && ARCHIVE.test(new URL(text).pathname))
    return { kind: 'npm', text, spec: text };
  if (looksLikePath(text)) return parsePath(text, resolve(projectDir, text));
  return parseName(text);
}

/** The source is kept, listed and logged. A user of ssh alone is no secret. */
function refuseCredentials(text: string): void {
  const address = text.replace(/^git\+/, '');
  if (!address.includes('://') || !URL.canParse(address)) return;
  const { protocol, username, password, host, pathname } = new URL(address);
  if (password === '' && (username === '' || protocol === 'ssh:')) return;
  throw refused(
    `${protocol}//${host}${pathname}`,
    'its address holds credentials; leave them to git (a credential helper, or ssh) or to npm (.npmrc)',
  );
}

function looksLikePath(text: string): boolean {
  return /^\.{1,2}(?:\/|$)/.test(text) || isAbsolute(text) || (ARCHIVE.test(text) && !text.includes('://'));
}

function parsePath(text: string, path: string): Source {
  if (!existsSync(path)) throw refused(text, `there is no ${path}`);
  if (statSync(path).isDirectory()) return { kind: 'folder', text, path };
  if (ARCHIVE.test(path)) return { kind: 'tarball', text, path };
  throw refused(text, `${path} is neither a folder nor a .tgz archive`);
}

function parseGit(text: string): Source | undefined {
  const [address = '', ref = null] = text.split('#', 2);
  if (ref !== null && !/^[\w./-]+$/.test(ref)) throw refused(text, `"${ref}" is no branch, tag or commit`);
  const github = GITHUB.exec(address)?.[1];
  if (github) return { kind: 'git', text, url: `https://github.com/${github}.git`, ref };
  if (!GIT_URL.test(address) || !(address.startsWith('git') || address.endsWith('.git'))) return undefined;
  const url = address.replace(/^git\+/, '');
  if (!URL.canParse(url)) throw refused(text, 'the address cannot be read');
  return { kind: 'git', text, url, ref };
}

function parseName(text: string): Source {
  const at = text.indexOf('@', 1);
  const name = at === -1 ? text : text.slice(0, at);
  const range = at === -1 ? '' : text.slice(at + 1);
  if (!PluginId.safeParse(name).success || !/^[\w.^~<>=|*\- ]*$/.test(range)) {
    throw refused(
      text,
      'give an npm name ("@acme/orders@^1"), a folder ("./orders"), an archive (.tgz) or a git address',
    );
  }
  return { kind: 'npm', text, spec: text };
}

function refused(text: string, why: string): PlatformError {
  return new PlatformError('VALIDATION_ERROR', `"${text}" cannot be installed: ${why}.`, {
    details: { source: text },
  });
}
