import { existsSync, statSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import { z } from 'zod';
import { isMcpSource, type McpPluginSource, PluginId, parseMcpSource } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';

/** The source of a plugin. `text` is stored in the lock file. */
export type Source =
  | { kind: 'npm'; text: string; spec: string }
  | { kind: 'tarball'; text: string; path: string }
  | { kind: 'folder'; text: string; path: string }
  | { kind: 'git'; text: string; url: string; ref: string | null }
  | { kind: 'mcp'; text: string; server: McpPluginSource };

const ARCHIVE = /\.(?:tgz|tar\.gz)$/i;
const GIT_URL = /^(?:git\+)?(https|ssh|file|git):\/\//;
const GITHUB = /^github:([\w.-]+\/[\w.-]+?)(?:\.git)?$/;

/**
 * Parses a source, such as a path, a git address, or an npm name with a range. Paths are relative to the project.
 * Throws VALIDATION_ERROR for an invalid source.
 */
export function parseSource(text: string, projectDir: string): Source {
  // The text becomes an argument of npm or git. Both programs would read a text with a leading dash as an option.
  if (text.startsWith('-') || /[\0\r\n]/.test(text)) throw refused(text, 'it is not a name, path or address');
  if (isMcpSource(text)) return { kind: 'mcp', text, server: mcpServerOf(text) };
  refuseCredentials(text);
  const git = parseGit(text);
  if (git) return git;
  if (text.startsWith('https://') && URL.canParse(text) && ARCHIVE.test(new URL(text).pathname))
    return { kind: 'npm', text, spec: text };
  if (looksLikePath(text)) return parsePath(text, resolve(projectDir, text));
  return parseName(text);
}

/** Rejects credentials in a source, because sources are stored, listed and logged. An ssh user name is not a secret. */
function refuseCredentials(text: string): void {
  const address = text.replace(/^git\+/, '');
  if (!address.includes('://') || !URL.canParse(address)) return;
  const { protocol, username, password, host, pathname } = new URL(address);
  if (password === '' && (username === '' || protocol === 'ssh:')) return;
  throw refused(
    `${protocol}//${host}${pathname}`,
    'its address contains credentials; configure them in git (a credential helper, or ssh) or npm (.npmrc) instead',
  );
}

function mcpServerOf(text: string): McpPluginSource {
  try {
    const server = parseMcpSource(text);
    if (server.url !== undefined) refuseCredentials(server.url);
    return server;
  } catch (error) {
    if (!(error instanceof z.ZodError)) throw error;
    const why = error.issues.map(({ path, message }) => `${path.join('.')} ${message}`.trim()).join('; ');
    throw refused('The MCP server', why.replace(/\.$/, ''));
  }
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
  if (ref !== null && !/^[\w./-]+$/.test(ref)) throw refused(text, `"${ref}" is not a branch, tag or commit`);
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
      'use an npm name ("@acme/orders@^1"), a folder ("./orders"), an archive (.tgz) or a git address',
    );
  }
  return { kind: 'npm', text, spec: text };
}

function refused(text: string, why: string): PlatformError {
  return new PlatformError('VALIDATION_ERROR', `"${text}" cannot be installed: ${why}.`, {
    details: { source: text },
  });
}
